// SPDX-License-Identifier: Apache-2.0
// Whole SCAPE steps of several ranks by the kernels, the collectives on the host, beside the
// reference optimizer.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/check/check.hpp"
#include "kernels/reference/scape.hpp"

namespace scapesim::kernels {

namespace {

using reference::PerRank;

/// A mask, its tiles' counts and offsets.
struct MaskBuffers {
  explicit MaskBuffers(std::size_t n)
      : words(words_of(n)),
        counts(tiles_of(n)),
        scratch(scan_scratch(tiles_of(n))),
        offsets(tiles_of(n) + 1) {}
  Array<std::uint32_t> words, counts;
  Array<std::uint64_t> scratch, offsets;
};

struct DeviceRank {
  DeviceRank(const std::vector<float>& parameters, Range part,
             const std::vector<SelectPiece>& table, std::size_t shift)
      : owned(part),
        moment(std::vector<float>(parameters.size()), shift),
        residual(std::vector<float>(parameters.size()), shift),
        weights(parameters, shift),
        master(std::vector<float>(
                   parameters.begin() + static_cast<std::ptrdiff_t>(part.first),
                   parameters.begin() + static_cast<std::ptrdiff_t>(part.first + part.count)),
               shift),
        scores(part.count, shift),
        pieces(table),
        chunks(select_chunks(table, 512)),
        histograms(table.size() * kSelectBins),
        states(table.size()),
        chunk_ties(chunks.size()),
        own_words(words_of(part.count)),
        own_counts(tiles_of(part.count)),
        masks{MaskBuffers(parameters.size()), MaskBuffers(parameters.size())} {}

  MaskView mask() const { return {masks[0].words.data(), masks[0].offsets.data(), moment.size()}; }

  Range owned;
  Array<float> moment, residual, weights, master, scores;
  Array<SelectPiece> pieces;
  Array<SelectChunk> chunks;
  Array<std::uint32_t> histograms;
  Array<SelectState> states;
  Array<std::uint32_t> chunk_ties, own_words, own_counts;
  std::array<MaskBuffers, 2> masks;  ///< of this step and of the next
};

std::vector<SelectPiece> table_of(std::span<const reference::Piece> part, double density) {
  std::vector<SelectPiece> table;
  for (const auto& piece : part)
    table.push_back({piece.begin - reference::begin_of(part), piece.numel,
                     reference::top_count(piece, density)});
  return table;
}

class DeviceScape {
 public:
  DeviceScape(const std::vector<reference::Tensor>& tensors, const std::vector<float>& parameters,
              const reference::ScapeOptions& options, reference::Communicator& communicator,
              std::size_t shift)
      : options_(options),
        communicator_(communicator),
        elements_(parameters.size()),
        shift_(shift) {
    std::size_t begin = 0;
    for (const auto& part : reference::ownership(tensors, communicator.ranks(), options.owners)) {
      const Range owned{begin, reference::size_of(part)};
      parts_.push_back({owned.first, owned.count});
      ranks_.emplace_back(parameters, owned, table_of(part, options.density), shift);
      begin += owned.count;
    }
  }

  void step(const PerRank<float>& gradients, double learning_rate) {
    const auto c = reference::coefficients<float>(options_.adam, steps_ + 1, learning_rate);
    const bool first = steps_ == 0;
    if (!first)
      for (DeviceRank& rank : ranks_) std::swap(rank.masks[0], rank.masks[1]);
    PerRank<float> payloads = accumulate_all(gradients, c, first);
    if (first) {
      exchange_masks(0);
      payloads = release_all();
    }
    exchange_masks(1);
    communicator_.all_reduce_mean("payload all-reduce", payloads);
    update_all(payloads, c);
    ++steps_;
  }

  const DeviceRank& rank(std::size_t i) const { return ranks_[i]; }

 private:
  std::size_t selected(const DeviceRank& rank) const {
    return static_cast<std::size_t>(rank.masks[0].offsets.values().back());
  }

  PerRank<float> accumulate_all(const PerRank<float>& gradients, const Coefficients<float>& c,
                                bool without_mask) {
    PerRank<float> payloads;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      DeviceRank& rank = ranks_[i];
      const Array<float> gradient(gradients[i], shift_);
      Array<float> payload(without_mask ? 0 : selected(rank), shift_);
      accumulate<float, float>({.range = {0, elements_},
                                .moment = rank.moment.data(),
                                .gradient = gradient.data(),
                                .residual = rank.residual.data(),
                                .mask = without_mask ? MaskView{} : rank.mask(),
                                .payload = payload.data(),
                                .owned = rank.owned,
                                .scores = rank.scores.data(),
                                .coefficients = c},
                               nullptr);
      payloads.push_back(payload.values());
    }
    return payloads;
  }

  /// Owners' masks from their scores, gathered and put together.
  void exchange_masks(std::size_t which) {
    PerRank<std::uint8_t> wires;
    for (DeviceRank& rank : ranks_) {
      const Select<float> select{.scores = rank.scores.data(),
                                 .elements = rank.owned.count,
                                 .pieces = rank.pieces.data(),
                                 .piece_count = rank.pieces.size(),
                                 .chunks = rank.chunks.data(),
                                 .chunk_count = rank.chunks.size(),
                                 .histograms = rank.histograms.data(),
                                 .states = rank.states.data(),
                                 .chunk_ties = rank.chunk_ties.data(),
                                 .mask = rank.own_words.data(),
                                 .tile_counts = rank.own_counts.data()};
      select_threshold(select, nullptr);
      select_mask(select, nullptr);
      std::vector<std::uint8_t> wire((rank.owned.count + 7) / 8);
      copy_to_host(wire.data(), rank.own_words.data(), wire.size(), nullptr);
      wait_for(nullptr);
      wires.push_back(std::move(wire));
    }
    const auto gathered = communicator_.all_gather("mask all-gather", wires);
    const Array<MaskPart> parts(parts_);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      MaskBuffers& mask = ranks_[i].masks[which];
      const Array<std::uint8_t> wire(gathered[i], shift_);
      stitch_masks({.wire = wire.data(),
                    .padded_bytes = gathered[i].size() / ranks_.size(),
                    .parts = parts.data(),
                    .part_count = parts_.size(),
                    .elements = elements_,
                    .words = mask.words.data(),
                    .tile_counts = mask.counts.data()},
                   nullptr);
      scan_tiles({.tile_counts = mask.counts.data(),
                  .tiles = mask.counts.size(),
                  .scratch = mask.scratch.data(),
                  .offsets = mask.offsets.data()},
                 nullptr);
      wait_for(nullptr);
    }
  }

  /// The first step: its mask came after the local pass.
  PerRank<float> release_all() {
    PerRank<float> payloads;
    for (DeviceRank& rank : ranks_) {
      Array<float> payload(selected(rank), shift_);
      gather<float>({.range = {0, elements_},
                     .values = rank.residual.data(),
                     .gathered = Gathered::cleared,
                     .mask = rank.mask(),
                     .payload = payload.data()},
                    nullptr);
      payloads.push_back(payload.values());
    }
    return payloads;
  }

  void update_all(const PerRank<float>& payloads, const Coefficients<float>& c) {
    const bool sharded = options_.sharding == reference::Sharding::distributed;
    std::vector<Array<float>> sums;
    std::vector<Array<Clip>> clips;
    PerRank<float> weights;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      DeviceRank& rank = ranks_[i];
      sums.emplace_back(payloads[i], shift_);
      clips.emplace_back(1);
      Array<double> partial(kNormBlocks);
      selected_norm<float>({.mask = rank.mask(),
                            .payload = sums[i].data(),
                            .moment = rank.moment.data(),
                            .coefficients = c,
                            .limit = options_.adam.clip.value_or(kNoLimit),
                            .partial = partial.data(),
                            .clip = clips[i].data()},
                           nullptr);
      Array<float> sent(std::vector<float>(payloads[i].size()), shift_);
      scatter_adams<float>({.range = sharded ? rank.owned : Range{0, elements_},
                            .mask = rank.mask(),
                            .payload = sums[i].data(),
                            .moment = rank.moment.data(),
                            .weights = sharded ? rank.master.data() : rank.weights.data(),
                            .sent_weights = sharded ? sent.data() : nullptr,
                            .clip = clips[i].data(),
                            .coefficients = c,
                            .moment_update = sharded ? MomentUpdate::keep : MomentUpdate::replace},
                           nullptr);
      weights.push_back(sent.values());
    }
    if (!sharded) return;
    communicator_.all_reduce_sum("weight payload all-reduce", weights);
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      write_back_one(i, weights[i], sums[i], clips[i], c);
  }

  void write_back_one(std::size_t i, const std::vector<float>& weights, const Array<float>& payload,
                      const Array<Clip>& clip, const Coefficients<float>& c) {
    DeviceRank& rank = ranks_[i];
    const Array<float> updated(weights, shift_);
    write_back<float>({.range = {0, elements_},
                       .mask = rank.mask(),
                       .updated = updated.data(),
                       .payload = payload.data(),
                       .moment = rank.moment.data(),
                       .replica = rank.weights.data(),
                       .clip = clip.data(),
                       .coefficients = c},
                      nullptr);
    wait_for(nullptr);
  }

  reference::ScapeOptions options_;
  reference::Communicator& communicator_;
  std::size_t elements_;
  std::size_t shift_;
  std::vector<MaskPart> parts_;
  std::vector<DeviceRank> ranks_;
  int steps_ = 0;
};

std::vector<reference::Tensor> random_tensors(std::size_t elements, Random& random) {
  std::vector<reference::Tensor> tensors;
  for (std::size_t begin = 0; begin < elements;) {
    const std::size_t numel = std::min<std::size_t>(1 + random.below(elements), elements - begin);
    tensors.push_back({.numel = numel, .always_selected = random.below(5) == 0});
    begin += numel;
  }
  return tensors;
}

void check_ranks(const Setup& setup, int ranks, reference::Sharding sharding, Random& random,
                 Comparisons& results) {
  const auto tensors = random_tensors(setup.elements, random);
  const auto parameters = values_of({.pattern = Pattern::random}, setup.elements, random);
  const reference::ScapeOptions options{
      .adam = {.clip = random.uniform(0.1, 10)},
      .density = setup.density,
      .owners = sharding == reference::Sharding::distributed || random.below(2) == 0
                    ? reference::Owners::even
                    : reference::Owners::tensor,
      .sharding = sharding};
  reference::Communicator expected_calls(ranks);
  reference::Communicator calls(ranks);
  reference::Scape<float> expected(tensors, parameters, options, expected_calls);
  DeviceScape device(tensors, parameters, options, calls, setup.shift);
  for (int step = 0; step < 3; ++step) {
    PerRank<float> gradients;
    for (int rank = 0; rank < ranks; ++rank)
      gradients.push_back(values_of(setup, setup.elements, random));
    expected.step(gradients, 1e-2);
    device.step(gradients, 1e-2);
  }
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    const DeviceRank& got = device.rank(rank);
    results.exact("mask", words_from(expected.mask(rank)), got.masks[0].words.values());
    results.exact("next mask", words_from(expected.next_mask(rank)), got.masks[1].words.values());
    results.close("residual", expected.residual(rank), got.residual.values());
    results.close("moment", expected.moment(rank), got.moment.values());
    results.close("weights", expected.parameters(rank), got.weights.values());
  }
}

}  // namespace

void check_steps(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  check_ranks(setup, 2, reference::Sharding::none, random, results);
  check_ranks(setup, 3, reference::Sharding::distributed, random, results);
}

}  // namespace scapesim::kernels
