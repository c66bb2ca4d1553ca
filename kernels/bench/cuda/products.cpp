// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt, and the stand-in of attention made of them.
#include <fmt/format.h>

#include "kernels/bench/cuda/families.hpp"
#include "kernels/bench/cuda/passes.hpp"
#include "kernels/device/gemm.hpp"

namespace scapesim::bench {

namespace {

using device::Gemm;
using device::GemmShape;
using device::Memory;

constexpr std::size_t kQuickShapes = 40;

GemmShape::Layout layout_of(GemmCase::Pass pass) {
  switch (pass) {
    case GemmCase::Pass::forward:
      return GemmShape::Layout::forward;
    case GemmCase::Pass::dgrad:
      return GemmShape::Layout::input_gradient;
    case GemmCase::Pass::wgrad:
      return GemmShape::Layout::weight_gradient;
  }
  throw InternalError("pass");
}

const char* word_of(GemmCase::Pass pass) {
  switch (pass) {
    case GemmCase::Pass::forward:
      return "forward";
    case GemmCase::Pass::dgrad:
      return "dgrad";
    case GemmCase::Pass::wgrad:
      return "wgrad";
  }
  throw InternalError("pass");
}

/// Operands and result of one product, random.
struct Matrices {
  Memory a, b, c;
  Matrices(const Gemm& gemm, std::uint64_t seed, cudaStream_t stream)
      : a(gemm.a_bytes()), b(gemm.b_bytes()), c(gemm.c_bytes()) {
    fill_random_bf16(a.as<void>(), a.bytes() / 2, seed, stream);
    fill_random_bf16(b.as<void>(), b.bytes() / 2, seed + 1, stream);
    fill_random_bf16(c.as<void>(), c.bytes() / 2, seed + 2, stream);
  }
};

void measure_gemm(const Session& session, Stopwatch& stopwatch, const GemmCase& gemm_case) {
  const Gemm gemm(
      {.m = gemm_case.m, .n = gemm_case.n, .k = gemm_case.k, .layout = layout_of(gemm_case.pass)});
  const std::size_t bytes = gemm.a_bytes() + gemm.b_bytes() + gemm.c_bytes();
  const int sets = stopwatch.sets_for(bytes);
  std::vector<Matrices> data;
  for (int i = 0; i < sets; ++i)
    data.emplace_back(gemm, static_cast<std::uint64_t>(3 * i), stopwatch.stream());
  const Launch launch = [&](int set, cudaStream_t stream) {
    const Matrices& own = data[static_cast<std::size_t>(set)];
    gemm.run(own.a.as<void>(), own.b.as<void>(), own.c.as<void>(), stream);
  };
  Row row{.kind = "gemm",
          .name = gemm_case.name + " " + word_of(gemm_case.pass),
          .measured = stopwatch.measure(session, launch, sets),
          .bytes = static_cast<double>(bytes),
          .copy_rate = {}};
  row.numbers = {{"m", static_cast<double>(gemm_case.m)},
                 {"n", static_cast<double>(gemm_case.n)},
                 {"k", static_cast<double>(gemm_case.k)}};
  row.texts = {{"dtype", "bf16"}, {"pass", word_of(gemm_case.pass)}};
  const double flops = 2.0 * row.numbers["m"] * row.numbers["n"] * row.numbers["k"];
  session.progress(fmt::format("gemm {}: {:.0f} TFLOP/s", row.name,
                               flops / summary_of(row.measured.samples).median / 1e12));
  session.write(std::move(row));
}

}  // namespace

void measure_gemms(Session& session, Stopwatch& stopwatch, const std::vector<GemmCase>& shapes) {
  if (shapes.empty()) session.progress("gemm: no list of shapes (--shapes), left out");
  const auto some =
      session.options.extent == Extent::quick ? thinned(shapes, kQuickShapes) : shapes;
  for (const GemmCase& gemm_case : some) measure_gemm(session, stopwatch, gemm_case);
}

// Not flash attention: scores are written and read. Its rows are of kind kernel, not attention.
void measure_attention(Session& session, Stopwatch& stopwatch) {
  constexpr long kHeads = 32;
  constexpr long kWidth = 128;
  for (const long sequence : {1024L, 2048L, 4096L}) {
    const Gemm scores({sequence, sequence, kWidth, GemmShape::Layout::forward, kHeads});
    const Gemm values({sequence, kWidth, sequence, GemmShape::Layout::input_gradient, kHeads});
    const Matrices first(scores, 1, stopwatch.stream());
    const Matrices second(values, 4, stopwatch.stream());
    const Launch launch = [&](int, cudaStream_t stream) {
      scores.run(first.a.as<void>(), first.b.as<void>(), first.c.as<void>(), stream);
      softmax_rows(first.c.as<void>(), static_cast<std::size_t>(sequence * kHeads),
                   static_cast<std::size_t>(sequence), stream);
      values.run(first.c.as<void>(), second.b.as<void>(), second.c.as<void>(), stream);
    };
    Row row{.kind = "kernel",
            .name = "stand-in: two products and a softmax",
            .measured = stopwatch.measure(session, launch, 1),
            .bytes = {},
            .copy_rate = {}};
    row.texts["shape"] = fmt::format("sequence={} heads={} width={}", sequence, kHeads, kWidth);
    session.progress("attention stand-in " + row.texts["shape"]);
    session.write(std::move(row));
  }
}

}  // namespace scapesim::bench
