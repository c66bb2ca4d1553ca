// SPDX-License-Identifier: Apache-2.0
// [M200] The counted bytes of every kernel against the sectors that its source really touches on
// the shim, where masks are random.
#include "kernels/cuda/traffic.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "kernels/check/check.hpp"
#include "kernels/simt/simt.hpp"

using namespace scapesim;
using namespace scapesim::kernels;

namespace {

constexpr std::size_t kElements = 1U << 16U;
constexpr double kDensity = 0.1;
// 8,192 sectors of fp32, 57 % of them touched: three standard deviations are 1.6 %. Tile offsets
// and clips are below that.
constexpr double kTables = 0.02;

double per_element(const std::function<void()>& kernel) {
  simt::take_moved_bytes();
  kernel();
  const simt::Moved moved = simt::take_moved_bytes();
  return static_cast<double>(moved.read + moved.written) / static_cast<double>(kElements);
}

/// Arrays of everything, aligned.
struct Bench {
  Bench() : Bench(Random(5)) {}
  explicit Bench(Random random)
      : mask(independent(random)),
        previous(independent(random)),
        selected(reference::count(mask)),
        device_mask(mask),
        device_previous(previous),
        a(values_of(setup, kElements, random)),
        b(values_of(setup, kElements, random)),
        c(values_of(setup, kElements, random)),
        d(std::vector<float>(kElements)),
        short_a(stored<Bf16>(values_of(setup, kElements, random))),
        short_b(kElements),
        payload(values_of(setup, selected, random)),
        short_payload(stored<Bf16>(values_of(setup, selected, random))),
        sent(selected) {}

  static reference::Mask independent(Random& random) {
    reference::Mask mask(kElements);
    for (auto& bit : mask) bit = random.uniform() < kDensity ? 1 : 0;
    return mask;
  }
  double density() const { return static_cast<double>(selected) / static_cast<double>(kElements); }

  Setup setup{.elements = kElements};
  reference::Mask mask, previous;
  std::size_t selected;
  DeviceMask device_mask, device_previous;
  Array<float> a, b, c, d;
  Array<Bf16> short_a, short_b;
  Array<float> payload;
  Array<Bf16> short_payload;
  Array<float> sent;
  Range all{0, kElements};
  Coefficients<float> coefficients = reference::coefficients<float>({}, 3, 1e-3);
};

}  // namespace

TEST_CASE("[M200] local pass and gather move the bytes that are counted") {
  if (!simt::sees_accesses()) return;
  Bench t;
  const double full = per_element([&] {
    accumulate<float, float>({.range = t.all,
                              .moment = t.a.data(),
                              .gradient = t.b.data(),
                              .residual = t.c.data(),
                              .mask = t.device_mask.view(),
                              .payload = t.payload.data(),
                              .owned = {0, kElements / 4},
                              .scores = t.d.data(),
                              .coefficients = t.coefficients},
                             nullptr);
  });
  CHECK(full == Approx(traffic::accumulate(t.density(), 4, 4, 0.25)).epsilon(kTables));
  const double rounded = per_element([&] {
    accumulate<Bf16, Bf16>({.range = t.all,
                            .moment = t.a.data(),
                            .gradient = t.short_a.data(),
                            .residual = t.c.data(),
                            .mask = t.device_mask.view(),
                            .payload = t.short_payload.data(),
                            .coefficients = t.coefficients},
                           nullptr);
  });
  CHECK(rounded == Approx(traffic::accumulate(t.density(), 2, 2)).epsilon(kTables));
  const double unmasked = per_element([&] {
    accumulate<float, float>({.range = t.all,
                              .moment = t.a.data(),
                              .gradient = t.b.data(),
                              .residual = t.c.data(),
                              .coefficients = t.coefficients},
                             nullptr);
  });
  CHECK(unmasked == Approx(traffic::accumulate_unmasked(4)).epsilon(kTables));
  const double gathered = per_element([&] {
    gather<float>({.range = t.all,
                   .values = t.c.data(),
                   .gathered = Gathered::cleared,
                   .mask = t.device_mask.view(),
                   .payload = t.payload.data()},
                  nullptr);
  });
  CHECK(gathered == Approx(traffic::gather(t.density(), 4, Gathered::cleared)).epsilon(kTables));
}

TEST_CASE("[M200] masks move the bytes that are counted") {
  if (!simt::sees_accesses()) return;
  Bench t;
  Array<std::uint32_t> words(words_of(kElements)), counts(tiles_of(kElements));
  const auto wire = reference::wire_of(t.mask, reference::MaskFormat::packed);
  const Array<std::uint8_t> device_wire(wire);
  const Array<MaskPart> parts(std::vector<MaskPart>{{0, kElements}});
  const double stitched = per_element([&] {
    stitch_masks({.wire = device_wire.data(),
                  .padded_bytes = wire.size(),
                  .parts = parts.data(),
                  .part_count = 1,
                  .elements = kElements,
                  .words = words.data(),
                  .tile_counts = counts.data()},
                 nullptr);
  });
  CHECK(stitched == Approx(traffic::stitch_masks()).epsilon(kTables));
  Array<std::uint32_t> masks(std::vector<std::uint32_t>(3 * words.size()));
  const double together = per_element([&] {
    or_masks({.masks = masks.data(),
              .count = 3,
              .stride = words.size(),
              .elements = kElements,
              .words = words.data(),
              .tile_counts = counts.data()},
             nullptr);
  });
  CHECK(together == Approx(traffic::or_masks(3)).epsilon(kTables));
}

TEST_CASE("[M200] selection reads its scores as often as is counted, beside its histograms") {
  if (!simt::sees_accesses()) return;
  Bench t;
  const std::vector<SelectPiece> pieces{{0, kElements, kElements / 10}};
  const auto chunks = select_chunks(pieces, kSelectChunk);
  const Array<SelectPiece> device_pieces(pieces);
  const Array<SelectChunk> device_chunks(chunks);
  Array<std::uint32_t> histograms(kSelectBins), ties(chunks.size()), words(words_of(kElements)),
      counts(tiles_of(kElements));
  Array<SelectState> states(1);
  const Select<float> select{.scores = t.a.data(),
                             .elements = kElements,
                             .pieces = device_pieces.data(),
                             .piece_count = 1,
                             .chunks = device_chunks.data(),
                             .chunk_count = chunks.size(),
                             .histograms = histograms.data(),
                             .states = states.data(),
                             .chunk_ties = ties.data(),
                             .mask = words.data(),
                             .tile_counts = counts.data()};
  // A digit's histogram is added to (in and out), read and cleared.
  const double tables = 3 * 4.0 * kSelectBins * 4 / kElements + 0.02;
  const double threshold = per_element([&] { select_threshold(select, nullptr); });
  CHECK(threshold >= traffic::select_threshold(4));
  CHECK(threshold <= traffic::select_threshold(4) + tables);
  const double mask = per_element([&] { select_mask(select, nullptr); });
  CHECK(mask == Approx(traffic::select_mask(4)).epsilon(kTables));
}

TEST_CASE("[M200] norms and updates move the bytes that are counted") {
  if (!simt::sees_accesses()) return;
  Bench t;
  Array<double> partial(kNormBlocks);
  Array<Clip> clip(1);
  const double norm = per_element([&] {
    selected_norm<float>({.mask = t.device_mask.view(),
                          .payload = t.payload.data(),
                          .moment = t.a.data(),
                          .coefficients = t.coefficients,
                          .partial = partial.data(),
                          .clip = clip.data()},
                         nullptr);
  });
  CHECK(norm == Approx(traffic::selected_norm(t.density(), 4)).epsilon(kTables));
  ScatterAdamS<float> scatter{.range = t.all,
                              .mask = t.device_mask.view(),
                              .previous_mask = t.device_previous.words.data(),
                              .payload = t.payload.data(),
                              .moment = t.a.data(),
                              .weights = t.b.data(),
                              .copy = t.short_b.data(),
                              .clip = clip.data(),
                              .coefficients = t.coefficients};
  CHECK(per_element([&] { scatter_adams(scatter, nullptr); }) ==
        Approx(traffic::scatter_adams(t.density(), 4, 2)).epsilon(kTables));
  scatter.moment_update = MomentUpdate::keep;
  scatter.sent_weights = t.sent.data();
  CHECK(per_element([&] { scatter_adams(scatter, nullptr); }) ==
        Approx(traffic::scatter_adams(t.density(), 4, 2, MomentUpdate::keep, 4)).epsilon(kTables));
  scatter.moment_update = MomentUpdate::replace;
  scatter.sent_weights = nullptr;
  scatter.decay = Decay::selected;
  CHECK(per_element([&] { scatter_adams(scatter, nullptr); }) ==
        Approx(traffic::scatter_adams_selected(t.density(), 4, 2)).epsilon(kTables));
  const double replica = per_element([&] {
    write_back<float>({.range = t.all,
                       .mask = t.device_mask.view(),
                       .updated = t.sent.data(),
                       .payload = t.payload.data(),
                       .moment = t.a.data(),
                       .replica = t.b.data(),
                       .copy = t.short_b.data(),
                       .clip = clip.data(),
                       .coefficients = t.coefficients},
                      nullptr);
  });
  CHECK(replica == Approx(traffic::write_back(t.density(), 4, 2)).epsilon(kTables));
}

TEST_CASE("[M200] dense updates and codes move the bytes that are counted") {
  if (!simt::sees_accesses()) return;
  Bench t;
  for (const DenseMethod method : {DenseMethod::adams, DenseMethod::adamw}) {
    const double update = per_element([&] {
      dense_update<Bf16>({.method = method,
                          .elements = kElements,
                          .gradient = t.short_a.data(),
                          .moment = t.a.data(),
                          .second = t.d.data(),
                          .weights = t.b.data(),
                          .copy = t.short_b.data(),
                          .coefficients = t.coefficients},
                         nullptr);
    });
    CHECK(update == Approx(traffic::dense_update(method, 2, 2)).epsilon(kTables));
  }
  for (const Code code : {Code::int8, Code::int4}) {
    Array<std::uint8_t> codes(code_bytes(code, kElements));
    Array<float> scales(scales_of(kElements));
    const double there = per_element([&] {
      quantise<Bf16>({.code = code,
                      .values = t.short_a.data(),
                      .elements = kElements,
                      .codes = codes.data(),
                      .scales = scales.data()},
                     nullptr);
    });
    CHECK(there == Approx(traffic::quantise(code, 2)).epsilon(kTables));
    const double back = per_element([&] {
      dequantise<float>({.code = code,
                         .codes = codes.data(),
                         .scales = scales.data(),
                         .elements = kElements,
                         .values = t.c.data()},
                        nullptr);
    });
    CHECK(back == Approx(traffic::dequantise(code, 4)).epsilon(kTables));
  }
}
