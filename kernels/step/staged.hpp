// SPDX-License-Identifier: Apache-2.0
// fp32 state of all elements: in device memory, or in host memory, which passes then visit through
// two device buffers [M55] or address directly (coherent links such as NVLink-C2C; over PCIe every
// access crosses the bus).
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/step/backend.hpp"
#include "kernels/step/offload.hpp"
#include "sim/base/named.hpp"

namespace scapesim::step {

enum class Placement { resident, staged, direct };
inline std::span<const Named<Placement>> names_of(Placement*) {
  static constexpr Named<Placement> kRows[] = {{Placement::resident, "resident"},
                                               {Placement::staged, "staged"},
                                               {Placement::direct, "direct"}};
  return kRows;
}

class StagedState {
 public:
  /// chunk: elements of a buffer; used when staged.
  StagedState(Backend& backend, Placement placement, std::size_t elements, std::size_t chunk);

  /// Fills the state before the first visit; later work of the compute lane sees it.
  void fill(std::span<const float> values);

  /// What a pass does to the values of a range, on the compute lane.
  using Pass = std::function<void(kernels::Range, float* values)>;
  /// Enqueues the pass over all elements. Visits follow each other as the schedule's steps do.
  void visit(const Pass& pass);

  /// Values on the host, after waiting for all lanes.
  std::vector<float> values();

  /// What the last visit copied, from the first copy's begin to the last one's end.
  struct Copies {
    Event begin;
    Event end;
  };
  const std::optional<Copies>& copies_in() const { return in_; }
  const std::optional<Copies>& copies_out() const { return out_; }
  std::size_t bytes() const { return elements_ * sizeof(float); }

 private:
  /// Ends of the stages of each chunk.
  struct Ends {
    std::array<std::vector<Event>, 3> of_stage;
    explicit Ends(std::size_t chunks) { of_stage.fill(std::vector<Event>(chunks)); }
  };
  void enqueue(const ChunkMove& move, const Pass& pass);
  float* host_side();

  Backend& backend_;
  Placement placement_;
  std::size_t elements_;
  float* memory_;
  float* mirror_ = nullptr;  ///< on the host, of resident state; made when asked for
  std::array<float*, 2> buffers_{};
  std::vector<ChunkMove> schedule_;
  Ends now_;
  Ends before_;
  std::optional<Copies> in_;
  std::optional<Copies> out_;
};

}  // namespace scapesim::step
