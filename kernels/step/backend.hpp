// SPDX-License-Identifier: Apache-2.0
// What a step needs of one rank's device: queues in order, events between them, memory, the kernels
// and two communicators. Every call enqueues and returns; only synchronise() waits. The step is
// written once over this; a CUDA device with NCCL and a host without either implement it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/launch.hpp"

namespace scapesim::step {

/// A queue: what is enqueued on one lane happens in order, lanes run apart. `payload` and `mask`
/// have a communicator each.
enum class Lane { compute, payload, mask, copy_in, copy_out };
inline constexpr std::size_t kLanes = 5;

/// Where memory is: on the device, or on the host where the device can copy from and address it.
enum class Where { device, host };

/// A point in a lane. Copies share it.
class Event {
 public:
  struct State {
    virtual ~State() = default;
  };
  Event() = default;
  explicit Event(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const std::shared_ptr<State>& state() const { return state_; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  std::shared_ptr<State> state_;
};

using Accumulate = kernels::Accumulate<float, float>;
using Gather = kernels::Gather<float>;
using Select = kernels::Select<float>;
using SelectedNorm = kernels::SelectedNorm<float>;
using ScatterAdamS = kernels::ScatterAdamS<float>;
using WriteBack = kernels::WriteBack<float>;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Lives as long as the backend; its content is undefined.
  virtual void* allocate(std::size_t bytes, Where where) = 0;

  /// Happens when everything enqueued on the lane so far has.
  virtual Event record(Lane lane) = 0;
  /// What is enqueued on the lane from here on comes after the event. An empty event is past.
  virtual void wait(Lane lane, const Event& event) = 0;
  /// Waits for all lanes. Throws what went wrong on them.
  virtual void synchronise() = 0;
  /// Seconds from one event to a later one, both past.
  virtual double seconds_between(const Event& begin, const Event& end) = 0;

  virtual void copy(Lane lane, void* to, const void* from, std::size_t bytes) = 0;
  virtual void clear(Lane lane, void* memory, std::size_t bytes) = 0;

  virtual void run(Lane lane, const Accumulate& arguments) = 0;
  virtual void run(Lane lane, const Gather& arguments) = 0;
  virtual void run(Lane lane, const Select& arguments) = 0;
  virtual void run(Lane lane, const kernels::Stitch& arguments) = 0;
  virtual void run(Lane lane, const kernels::ScanTiles& arguments) = 0;
  virtual void run(Lane lane, const SelectedNorm& arguments) = 0;
  virtual void run(Lane lane, const ScatterAdamS& arguments) = 0;
  virtual void run(Lane lane, const WriteBack& arguments) = 0;

  /// In place, on the communicator of the lane. All ranks make the same calls in the same order.
  virtual void all_reduce_mean(Lane lane, float* values, std::size_t count) = 0;
  virtual void all_reduce_sum(Lane lane, float* values, std::size_t count) = 0;
  /// `own` of every rank in rank order into `all`; `bytes` each.
  virtual void all_gather(Lane lane, const std::uint8_t* own, std::uint8_t* all,
                          std::size_t bytes) = 0;

  template <class T>
  T* array(std::size_t count, Where where = Where::device) {
    return static_cast<T*>(allocate(count * sizeof(T), where));
  }
};

}  // namespace scapesim::step
