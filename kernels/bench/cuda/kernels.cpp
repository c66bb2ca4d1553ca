// SPDX-License-Identifier: Apache-2.0
// SCAPE's kernels over sizes, densities and masks.
#include <cmath>
#include <fmt/format.h>

#include "kernels/bench/cuda/families.hpp"
#include "kernels/bench/cuda/passes.hpp"

namespace scapesim::bench {

namespace {

using device::Memory;
using kernels::kTile;

constexpr std::size_t kClusterRun = 256;  ///< elements that a clustered mask selects together

/// Data of one kernel call at one size, density and mask.
struct KernelData {
  std::size_t n;
  Memory moment, gradient, residual, weights, copy, scores, payload;
  Memory wire, words, counts, offsets, scan_scratch, parts;
  Memory pieces, chunks, histogram, states, chunk_ties, own_mask, own_counts;
  std::size_t chunk_count = 0;
  std::size_t selected = 0;

  KernelData(const KernelCase& kernel_case, std::uint64_t seed, cudaStream_t stream);
  kernels::MaskView mask() const {
    return {words.as<std::uint32_t>(), offsets.as<std::uint64_t>(), n};
  }
  void run(Kernel kernel, cudaStream_t stream) const;

 private:
  void place_mask(const KernelCase& kernel_case, std::uint64_t seed, cudaStream_t stream);
  void place_selection(double density, cudaStream_t stream);
  void run_local_pass(cudaStream_t stream) const;
  void run_select(cudaStream_t stream) const;
  void run_offsets(cudaStream_t stream) const;
  void run_update(cudaStream_t stream) const;
  void run_write_back(cudaStream_t stream) const;
};

kernels::Coefficients<float> constants() {
  return reference::coefficients<float>(reference::Adam{}, 10, 1e-4);
}

template <class T>
Memory uploaded(const std::vector<T>& values, cudaStream_t stream) {
  Memory memory(values.size() * sizeof(T));
  kernels::copy_to_device(memory.as<void>(), values.data(), memory.bytes(), stream);
  kernels::wait_for(stream);
  return memory;
}

KernelData::KernelData(const KernelCase& kernel_case, std::uint64_t seed, cudaStream_t stream)
    : n(kernel_case.elements) {
  for (Memory* values : {&moment, &gradient, &residual, &weights, &scores}) {
    *values = Memory(n * sizeof(float));
    fill_random(values->as<float>(), n, ++seed, stream);
  }
  copy = Memory(n * sizeof(kernels::Bf16));
  place_mask(kernel_case, seed, stream);
  place_selection(kernel_case.density, stream);
}

void KernelData::place_mask(const KernelCase& kernel_case, std::uint64_t seed,
                            cudaStream_t stream) {
  const std::size_t tiles = kernels::tiles_of(n);
  wire = Memory(kernels::words_of(n) * sizeof(std::uint32_t));
  words = Memory(wire.bytes());
  counts = Memory(tiles * sizeof(std::uint32_t));
  offsets = Memory((tiles + 1) * sizeof(std::uint64_t));
  scan_scratch = Memory(kernels::scan_scratch(tiles) * sizeof(std::uint64_t));
  parts = uploaded(std::vector<kernels::MaskPart>{{0, n}}, stream);
  fill_mask({.words = wire.as<std::uint32_t>(),
             .elements = n,
             .density = kernel_case.density,
             .run = kernel_case.mask == MaskKind::clustered ? kClusterRun : 1,
             .seed = seed},
            stream);
  run_offsets(stream);
  std::uint64_t all = 0;
  kernels::copy_to_host(&all, offsets.as<std::uint64_t>() + tiles, sizeof all, stream);
  kernels::wait_for(stream);
  selected = all;
  payload = Memory(selected * sizeof(float) + sizeof(float));
  fill_random(payload.as<float>(), selected, seed + 1, stream);
}

void KernelData::place_selection(double density, cudaStream_t stream) {
  const auto wanted = static_cast<std::uint64_t>(density * static_cast<double>(n));
  const std::vector<kernels::SelectPiece> list = {{0, n, std::max<std::uint64_t>(wanted, 1)}};
  const auto chunk_list = kernels::select_chunks(list, kernels::kSelectChunk);
  chunk_count = chunk_list.size();
  pieces = uploaded(list, stream);
  chunks = uploaded(chunk_list, stream);
  histogram = Memory(kernels::kSelectBins * sizeof(std::uint32_t));
  states = Memory(sizeof(kernels::SelectState));
  chunk_ties = Memory(chunk_count * sizeof(std::uint32_t));
  own_mask = Memory(kernels::words_of(n) * sizeof(std::uint32_t));
  own_counts = Memory(kernels::tiles_of(n) * sizeof(std::uint32_t));
}

void KernelData::run_local_pass(cudaStream_t stream) const {
  kernels::accumulate<float, float>({.range = {0, n},
                                     .moment = moment.as<float>(),
                                     .gradient = gradient.as<float>(),
                                     .residual = residual.as<float>(),
                                     .mask = mask(),
                                     .payload = payload.as<float>(),
                                     .owned = {},
                                     .coefficients = constants()},
                                    stream);
}

void KernelData::run_select(cudaStream_t stream) const {
  const kernels::Select<float> select{.scores = scores.as<float>(),
                                      .elements = n,
                                      .pieces = pieces.as<kernels::SelectPiece>(),
                                      .piece_count = 1,
                                      .chunks = chunks.as<kernels::SelectChunk>(),
                                      .chunk_count = chunk_count,
                                      .histograms = histogram.as<std::uint32_t>(),
                                      .states = states.as<kernels::SelectState>(),
                                      .chunk_ties = chunk_ties.as<std::uint32_t>(),
                                      .mask = own_mask.as<std::uint32_t>(),
                                      .tile_counts = own_counts.as<std::uint32_t>()};
  kernels::select_threshold(select, stream);
  kernels::select_mask(select, stream);
}

/// The mask as it lies on the wire of one owner.
void KernelData::run_offsets(cudaStream_t stream) const {
  kernels::stitch_masks({.wire = wire.as<std::uint8_t>(),
                         .padded_bytes = (n + 7) / 8,
                         .parts = parts.as<kernels::MaskPart>(),
                         .part_count = 1,
                         .elements = n,
                         .words = words.as<std::uint32_t>(),
                         .tile_counts = counts.as<std::uint32_t>()},
                        stream);
  kernels::scan_tiles({.tile_counts = counts.as<std::uint32_t>(),
                       .tiles = kernels::tiles_of(n),
                       .scratch = scan_scratch.as<std::uint64_t>(),
                       .offsets = offsets.as<std::uint64_t>()},
                      stream);
}

void KernelData::run_update(cudaStream_t stream) const {
  kernels::ScatterAdamS<float> update;
  update.range = {0, n};
  update.mask = mask();
  update.payload = payload.as<float>();
  update.moment = moment.as<float>();
  update.weights = weights.as<float>();
  update.copy = copy.as<kernels::Bf16>();
  update.coefficients = constants();
  kernels::scatter_adams(update, stream);
}

void KernelData::run_write_back(cudaStream_t stream) const {
  kernels::WriteBack<float> write_back;
  write_back.range = {0, n};
  write_back.mask = mask();
  write_back.updated = payload.as<float>();
  write_back.replica = weights.as<float>();
  write_back.copy = copy.as<kernels::Bf16>();
  write_back.coefficients = constants();
  kernels::write_back(write_back, stream);
}

void KernelData::run(Kernel kernel, cudaStream_t stream) const {
  switch (kernel) {
    case Kernel::local_pass:
      return run_local_pass(stream);
    case Kernel::select:
      return run_select(stream);
    case Kernel::mask_offsets:
      return run_offsets(stream);
    case Kernel::update:
      return run_update(stream);
    case Kernel::write_back:
      return run_write_back(stream);
  }
}

/// Bytes of one set at most.
std::size_t set_bytes(const KernelCase& kernel_case) { return kernel_case.elements * 28; }

}  // namespace

void measure_kernels(Session& session, Stopwatch& stopwatch) {
  for (const KernelCase& kernel_case : kernel_cases(session.options.extent)) {
    std::size_t free_bytes = 0;
    std::size_t all_bytes = 0;
    device::check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
    const int sets = stopwatch.sets_for(set_bytes(kernel_case));
    if (static_cast<std::size_t>(sets) * set_bytes(kernel_case) > free_bytes) {
      session.progress("kernels " + shape_of(kernel_case) + ": does not fit, left out");
      continue;
    }
    std::vector<KernelData> data;
    for (int i = 0; i < sets; ++i)
      data.emplace_back(kernel_case, static_cast<std::uint64_t>(100 * i), stopwatch.stream());
    const Launch launch = [&](int set, cudaStream_t stream) {
      data[static_cast<std::size_t>(set)].run(kernel_case.kernel, stream);
    };
    Row row{.kind = "kernel",
            .name = std::string(name_of(kernel_case.kernel)),
            .measured = stopwatch.measure(session, launch, sets),
            .bytes = counted_bytes(kernel_case),
            .copy_rate = {}};
    row.texts["shape"] = shape_of(kernel_case);
    row.numbers["selected"] = static_cast<double>(data[0].selected);
    session.progress(fmt::format("kernels {} {}: {:.1f} us", row.name, row.texts["shape"],
                                 1e6 * summary_of(row.measured.samples).median));
    session.write(std::move(row));
  }
}

}  // namespace scapesim::bench
