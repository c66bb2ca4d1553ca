// SPDX-License-Identifier: Apache-2.0
#include "kernels/step/staged.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace scapesim::step {

namespace {

Lane lane_of(Stage stage) {
  switch (stage) {
    case Stage::in:
      return Lane::copy_in;
    case Stage::pass:
      return Lane::compute;
    case Stage::out:
      return Lane::copy_out;
  }
  throw InternalError("stage");
}

std::size_t chunks_of(const std::vector<ChunkMove>& schedule) { return schedule.size() / 3; }

}  // namespace

StagedState::StagedState(Backend& backend, Placement placement, std::size_t elements,
                         std::size_t chunk)
    : backend_(backend),
      placement_(placement),
      elements_(elements),
      memory_(backend.array<float>(elements,
                                   placement == Placement::resident ? Where::device : Where::host)),
      schedule_(placement == Placement::staged ? chunk_schedule(elements, chunk)
                                               : std::vector<ChunkMove>{}),
      now_(chunks_of(schedule_)),
      before_(chunks_of(schedule_)) {
  if (placement == Placement::staged)
    for (float*& buffer : buffers_) buffer = backend.array<float>(std::min(chunk, elements));
}

void StagedState::fill(std::span<const float> values) {
  SCAPESIM_CHECK(values.size() == elements_, "{} of {} values", values.size(), elements_);
  if (values.empty()) return;
  float* const host = host_side();
  std::memcpy(host, values.data(), values.size_bytes());
  if (host != memory_) backend_.copy(Lane::compute, memory_, host, values.size_bytes());
}

float* StagedState::host_side() {
  if (placement_ != Placement::resident) return memory_;
  if (mirror_ == nullptr) mirror_ = backend_.array<float>(elements_, Where::host);
  return mirror_;
}

void StagedState::visit(const Pass& pass) {
  if (placement_ != Placement::staged) {
    pass({0, elements_}, memory_);
    return;
  }
  std::swap(now_, before_);
  in_.reset();
  out_.reset();
  for (const ChunkMove& move : schedule_) enqueue(move, pass);
}

void StagedState::enqueue(const ChunkMove& move, const Pass& pass) {
  const Lane lane = lane_of(move.stage);
  for (const ChunkWait& wait : move.waits) {
    const Ends& ends = wait.steps_back == 0 ? now_ : before_;
    backend_.wait(lane, ends.of_stage[static_cast<std::size_t>(wait.stage)][wait.chunk]);
  }
  float* const buffer = buffers_[move.buffer];
  const std::size_t bytes = move.count * sizeof(float);
  std::optional<Copies>* copies = nullptr;
  if (move.stage == Stage::in) copies = &in_;
  if (move.stage == Stage::out) copies = &out_;
  if (copies != nullptr && !*copies) *copies = Copies{backend_.record(lane), {}};
  if (move.stage == Stage::in) backend_.copy(lane, buffer, memory_ + move.first, bytes);
  if (move.stage == Stage::pass) pass({move.first, move.count}, buffer);
  if (move.stage == Stage::out) backend_.copy(lane, memory_ + move.first, buffer, bytes);
  const Event end = backend_.record(lane);
  now_.of_stage[static_cast<std::size_t>(move.stage)][move.chunk] = end;
  if (copies != nullptr) (*copies)->end = end;
}

std::vector<float> StagedState::values() {
  std::vector<float> values(elements_);
  backend_.synchronise();
  if (elements_ == 0) return values;
  float* const host = host_side();
  if (host != memory_) {
    backend_.copy(Lane::compute, host, memory_, elements_ * sizeof(float));
    backend_.synchronise();
  }
  std::copy(host, host + elements_, values.begin());
  return values;
}

}  // namespace scapesim::step
