// SPDX-License-Identifier: Apache-2.0
#include "kernels/step/scape_step.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/base/check.hpp"

namespace scapesim::step {

using kernels::Clip;
using kernels::MaskPart;
using kernels::MaskView;
using kernels::Range;
using kernels::SelectPiece;
using reference::Collective;

namespace {

using Constants = kernels::Coefficients<float>;

reference::Storage storage_of(Placement placement) {
  return placement == Placement::resident ? reference::Storage::resident : reference::Storage::host;
}

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

/// A constant table on the device, filled on the compute lane.
template <class T>
T* table(Backend& backend, const std::vector<T>& rows) {
  T* const device = backend.array<T>(rows.size());
  T* const host = backend.array<T>(rows.size(), Where::host);
  std::copy(rows.begin(), rows.end(), host);
  if (!rows.empty()) backend.copy(Lane::compute, device, host, bytes_of(rows));
  return device;
}

std::vector<SelectPiece> select_pieces(const std::vector<reference::Piece>& part, double density) {
  std::vector<SelectPiece> pieces;
  for (const reference::Piece& piece : part)
    pieces.push_back({piece.begin - reference::begin_of(part), piece.numel,
                      reference::top_count(piece, density)});
  return pieces;
}

}  // namespace

reference::ScapeOptions reference_options(const StepOptions& options) {
  reference::ScapeOptions same;
  same.adam = options.adam;
  same.density = options.density;
  same.density_warmup = options.density_warmup;
  same.owners = options.owners;
  same.mask_delay = options.mask_delay;
  same.sharding = options.sharding;
  same.second_payload = options.second_payload;
  same.residual = storage_of(options.residual);
  same.replica = storage_of(options.replica);
  same.chunk = options.chunk;
  return same;
}

double ring_bytes(const Call& call, int ranks) {
  const double around = static_cast<double>(ranks - 1) / ranks;
  const double once = static_cast<double>(call.bytes) * around;
  return call.kind == Collective::all_reduce ? 2 * once : once;
}

ScapeStep::ScapeStep(Backend& backend, std::vector<reference::Tensor> tensors,
                     std::span<const float> parameters, StepOptions options)
    : backend_(backend),
      tensors_(std::move(tensors)),
      options_(options),
      parts_(reference::ownership(tensors_, backend.ranks(), options.owners)),
      elements_(reference::total_of(tensors_)),
      residual_(backend, options.residual, elements_, options.chunk),
      replica_(backend, options.replica, elements_, options.chunk) {
  SCAPESIM_CHECK(parameters.size() == elements_, "{} parameters", parameters.size());
  SCAPESIM_CHECK(options.density > 0 && options.density <= 1, "density {}", options.density);
  SCAPESIM_CHECK(options.mask_delay == 0 || options.mask_delay == 1, "{}", options.mask_delay);
  SCAPESIM_CHECK(
      options.sharding == reference::Sharding::none || options.owners == reference::Owners::even,
      "an owner is the optimizer's shard");
  place_tables();
  place_state(parameters);
  place_scratch();
}

bool ScapeStep::sends_weights() const {
  return options_.sharding == reference::Sharding::distributed &&
         options_.second_payload == reference::SecondPayload::weights;
}

double ScapeStep::density(int step) const {
  return reference::density_at(options_.density, options_.density_warmup, step);
}

std::size_t ScapeStep::selected(int step) const {
  std::size_t count = 0;
  for (const auto& part : parts_)
    for (const reference::Piece& piece : part) count += reference::top_count(piece, density(step));
  return count;
}

// Which pieces this rank owns and how many of each it selects, one row per density of the warm-up;
// where the owners' masks stand on the wire.
void ScapeStep::place_tables() {
  const auto& part = parts_[static_cast<std::size_t>(backend_.rank())];
  own_ = {.range = {reference::begin_of(part), reference::size_of(part)},
          .pieces = part.size(),
          .chunks = 0};
  std::vector<SelectPiece> rows;
  for (int step = 0; step <= options_.density_warmup; ++step) {
    const auto row = select_pieces(part, density(step));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  pieces_ = table(backend_, rows);

  const auto chunks =
      kernels::select_chunks(std::span(rows).first(part.size()), kernels::kSelectChunk);
  own_.chunks = chunks.size();
  select_.chunks = table(backend_, chunks);

  std::vector<MaskPart> mask_parts;
  std::size_t begin = 0;
  for (const auto& owner : parts_) {
    const std::size_t numel = reference::size_of(owner);
    mask_parts.push_back({begin, numel});
    padded_bytes_ = std::max(padded_bytes_, (numel + 7) / 8);
    begin += numel;
  }
  mask_parts_ = table(backend_, mask_parts);
}

void ScapeStep::place_state(std::span<const float> parameters) {
  residual_.fill(std::vector<float>(elements_));
  replica_.fill(parameters);
  moment_ = backend_.array<float>(elements_);
  backend_.clear(Lane::compute, moment_, elements_ * sizeof(float));
  if (!sends_weights()) return;
  const auto own = parameters.subspan(own_.range.first, own_.range.count);
  master_ = table(backend_, std::vector<float>(own.begin(), own.end()));
}

void ScapeStep::place_scratch() {
  const std::size_t tiles = kernels::tiles_of(elements_);
  for (DeviceMask& mask : masks_) {
    mask.words = backend_.array<std::uint32_t>(kernels::words_of(elements_));
    mask.offsets = backend_.array<std::uint64_t>(tiles + 1);
  }
  const std::size_t largest_payload = selected(0);  // densities only fall
  payload_ = backend_.array<float>(largest_payload);
  if (sends_weights()) sent_weights_ = backend_.array<float>(largest_payload);

  const std::size_t count = own_.range.count;
  scores_ = backend_.array<float>(count);
  const std::size_t own_words = (padded_bytes_ + 3) / 4;
  select_.scores = scores_;
  select_.elements = count;
  select_.piece_count = own_.pieces;
  select_.chunk_count = own_.chunks;
  select_.histograms = backend_.array<std::uint32_t>(own_.pieces * kernels::kSelectBins);
  select_.states = backend_.array<kernels::SelectState>(own_.pieces);
  select_.chunk_ties = backend_.array<std::uint32_t>(own_.chunks);
  select_.mask = backend_.array<std::uint32_t>(own_words);
  select_.tile_counts = backend_.array<std::uint32_t>(kernels::tiles_of(count));
  backend_.clear(Lane::compute, select_.mask, own_words * sizeof(std::uint32_t));

  wire_ = backend_.array<std::uint8_t>(padded_bytes_ * parts_.size());
  wire_tile_counts_ = backend_.array<std::uint32_t>(tiles);
  scan_scratch_ = backend_.array<std::uint64_t>(kernels::scan_scratch(tiles));
  if (!options_.adam.clip) return;
  norm_partial_ = backend_.array<double>(kernels::kNormBlocks);
  clip_ = backend_.array<Clip>(1);
  host_clip_ = backend_.array<Clip>(1, Where::host);
}

template <class Enqueue>
void ScapeStep::phase(const std::string& name, Lane lane, Enqueue enqueue) {
  const Event begin = backend_.record(lane);
  enqueue();
  phases_.push_back({name, begin, backend_.record(lane)});
}

void ScapeStep::enqueue(const float* gradient, double learning_rate) {
  const Constants c = reference::coefficients<float>(options_.adam, steps_ + 1, learning_rate);
  phases_.clear();
  calls_.clear();
  const bool known = options_.mask_delay == 1 && steps_ > 0;
  if (known)
    with_known_mask(gradient, c);
  else
    with_mask_of_this_step(gradient, c);

  const auto make_next = [&] {
    if (options_.mask_delay == 1) make_mask(masks_[1 - current_], steps_ + 1);
  };
  if (options_.mask_path == MaskPath::queued_first) make_next();
  send_payload();
  if (options_.mask_path == MaskPath::own) make_next();

  backend_.wait(Lane::compute, payload_done_);
  if (clip_ != nullptr) find_clip(c);
  if (sends_weights())
    update_by_owners(c);
  else
    update_alone(c);
  if (options_.mask_delay == 1) current_ = 1 - current_;
  ++steps_;
}

// [M51] The mask came during the step: one pass accumulates, keeps the residual and gathers.
void ScapeStep::with_known_mask(const float* gradient, const Constants& c) {
  backend_.wait(Lane::compute, current().ready);
  accumulate(gradient, view(current()), c);
}

// [M52] The first step, and every step without a delay: the mask is made of this step's moments and
// exchanged before anything is gathered.
void ScapeStep::with_mask_of_this_step(const float* gradient, const Constants& c) {
  accumulate(gradient, {}, c);
  make_mask(current(), steps_);
  backend_.wait(Lane::compute, current().ready);
  phase("residual, gather", Lane::compute, [&] {
    residual_.visit([&](Range range, float* residual) {
      backend_.run(Lane::compute, Gather{.range = range,
                                         .values = residual,
                                         .gathered = kernels::Gathered::cleared,
                                         .mask = view(current()),
                                         .payload = payload_});
    });
  });
}

void ScapeStep::accumulate(const float* gradient, MaskView mask, const Constants& c) {
  const char* name = mask.words != nullptr ? "accumulate, residual, gather" : "accumulate";
  phase(name, Lane::compute, [&] {
    residual_.visit([&](Range range, float* residual) {
      backend_.run(Lane::compute, Accumulate{.range = range,
                                             .moment = moment_,
                                             .gradient = gradient,
                                             .residual = residual,
                                             .mask = mask,
                                             .payload = payload_,
                                             .owned = own_.range,
                                             .scores = scores_,
                                             .coefficients = c});
    });
  });
}

// [M43] The owner's top k of its own moments; [M42] all gather the owners' bits; [M44] where each
// tile's payload begins. All but the selection is on the mask's lane.
void ScapeStep::make_mask(DeviceMask& mask, int step) {
  const auto row = static_cast<std::size_t>(std::min(step, options_.density_warmup));
  phase("top-k threshold and mask", Lane::compute, [&] {
    Select select = select_;
    select.pieces = pieces_ + row * own_.pieces;
    backend_.run(Lane::compute, select);
  });
  const Event chosen = backend_.record(Lane::compute);
  backend_.wait(mask_lane(), chosen);
  phase("mask all-gather", mask_lane(), [&] {
    backend_.all_gather(mask_lane(), reinterpret_cast<const std::uint8_t*>(select_.mask), wire_,
                        padded_bytes_);
  });
  calls_.push_back({"mask all-gather", Collective::all_gather, padded_bytes_ * parts_.size()});
  phase("mask offsets", mask_lane(), [&] {
    backend_.run(mask_lane(), kernels::Stitch{.wire = wire_,
                                              .padded_bytes = padded_bytes_,
                                              .parts = mask_parts_,
                                              .part_count = parts_.size(),
                                              .elements = elements_,
                                              .words = mask.words,
                                              .tile_counts = wire_tile_counts_});
    backend_.run(mask_lane(), kernels::ScanTiles{.tile_counts = wire_tile_counts_,
                                                 .tiles = kernels::tiles_of(elements_),
                                                 .scratch = scan_scratch_,
                                                 .offsets = mask.offsets});
  });
  mask.ready = backend_.record(mask_lane());
}

// [M47] One all-reduce of the moments at the selected positions.
void ScapeStep::send_payload() {
  const Event gathered = backend_.record(Lane::compute);
  backend_.wait(Lane::payload, gathered);
  const std::size_t count = selected(steps_);
  phase("payload all-reduce", Lane::payload,
        [&] { backend_.all_reduce_mean(Lane::payload, payload_, count); });
  calls_.push_back({"payload all-reduce", Collective::all_reduce, count * sizeof(float)});
  payload_done_ = backend_.record(Lane::payload);
}

void ScapeStep::find_clip(const Constants& c) {
  phase("norm", Lane::compute, [&] {
    backend_.run(Lane::compute, SelectedNorm{.mask = view(current()),
                                             .payload = payload_,
                                             .moment = moment_,
                                             .coefficients = c,
                                             .limit = *options_.adam.clip,
                                             .partial = norm_partial_,
                                             .clip = clip_});
    backend_.copy(Lane::compute, host_clip_, clip_, sizeof(Clip));
  });
}

ScatterAdamS ScapeStep::scatter(const Constants& c) const {
  return {.range = {},
          .mask = view(current()),
          .payload = payload_,
          .moment = moment_,
          .weights = nullptr,
          .sent_weights = nullptr,
          .clip = clip_,
          .coefficients = c,
          .decay = kernels::Decay::all,
          .moment_update = kernels::MomentUpdate::replace};
}

// [M53] Every rank updates all weights.
void ScapeStep::update_alone(const Constants& c) {
  phase("scatter and adams update", Lane::compute, [&] {
    replica_.visit([&](Range range, float* weights) {
      ScatterAdamS arguments = scatter(c);
      arguments.range = range;
      arguments.weights = weights;
      backend_.run(Lane::compute, arguments);
    });
  });
}

// [M48] Owners update their shards and send the weights on the mask, zeros elsewhere; [M54] the
// replicas take them over and decay off the mask.
void ScapeStep::update_by_owners(const Constants& c) {
  const std::size_t count = selected(steps_);
  phase("scatter and adams update", Lane::compute, [&] {
    backend_.clear(Lane::compute, sent_weights_, count * sizeof(float));
    ScatterAdamS arguments = scatter(c);
    arguments.range = own_.range;
    arguments.weights = master_;
    arguments.sent_weights = sent_weights_;
    arguments.moment_update = kernels::MomentUpdate::keep;
    backend_.run(Lane::compute, arguments);
  });
  const Event updated = backend_.record(Lane::compute);
  backend_.wait(Lane::payload, updated);
  phase("weight payload all-reduce", Lane::payload,
        [&] { backend_.all_reduce_sum(Lane::payload, sent_weights_, count); });
  calls_.push_back({"weight payload all-reduce", Collective::all_reduce, count * sizeof(float)});
  const Event sent = backend_.record(Lane::payload);
  backend_.wait(Lane::compute, sent);
  phase("replica write-back", Lane::compute, [&] {
    replica_.visit([&](Range range, float* weights) {
      backend_.run(Lane::compute, WriteBack{.range = range,
                                            .mask = view(current()),
                                            .updated = sent_weights_,
                                            .payload = payload_,
                                            .moment = moment_,
                                            .replica = weights,
                                            .clip = clip_,
                                            .coefficients = c});
    });
  });
}

RankState ScapeStep::state() {
  RankState state;
  state.weights = replica_.values();
  state.residual = residual_.values();
  const std::size_t words = kernels::words_of(elements_);
  float* const moment = backend_.array<float>(elements_, Where::host);
  auto* const mask = backend_.array<std::uint32_t>(words, Where::host);
  backend_.copy(Lane::compute, moment, moment_, elements_ * sizeof(float));
  backend_.copy(Lane::compute, mask, current().words, words * sizeof(std::uint32_t));
  backend_.synchronise();
  state.moment.assign(moment, moment + elements_);
  state.next_mask = reference::mask_of_wire(
      {reinterpret_cast<const std::uint8_t*>(mask), words * sizeof(std::uint32_t)}, elements_,
      reference::MaskFormat::packed);
  return state;
}

}  // namespace scapesim::step
