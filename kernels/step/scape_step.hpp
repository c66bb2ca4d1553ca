// SPDX-License-Identifier: Apache-2.0
// One rank's SCAPE step (arXiv 2607.01678) as it runs on a device: which kernels, copies and
// collectives are enqueued on which lane, in which order, and what waits for what. The host never
// waits inside a step: every size is known beforehand. It computes what reference::Scape<float>
// computes with owners' packed masks and one payload buffer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/reference/scape.hpp"
#include "kernels/step/backend.hpp"
#include "kernels/step/staged.hpp"
#include "sim/base/named.hpp"

namespace scapesim::step {

/// own: the mask travels on a communicator and lane of its own, behind the payload's launch and
/// beside it; queued_first: on the payload's, before it, as the released code does.
enum class MaskPath { own, queued_first };
inline std::span<const Named<MaskPath>> names_of(MaskPath*) {
  static constexpr Named<MaskPath> kRows[] = {{MaskPath::own, "own"},
                                              {MaskPath::queued_first, "queued-first"}};
  return kRows;
}

struct StepOptions {
  reference::Adam adam;
  double density = 0.1;
  int density_warmup = 0;
  reference::Owners owners = reference::Owners::even;
  int mask_delay = 1;  ///< 0 or 1
  MaskPath mask_path = MaskPath::own;
  reference::Sharding sharding = reference::Sharding::none;
  reference::SecondPayload second_payload = reference::SecondPayload::weights;
  Placement residual = Placement::resident;
  Placement replica = Placement::resident;    ///< all fp32 weights of a rank
  std::size_t chunk = std::size_t{1} << 22U;  ///< elements of a staging buffer
};

/// The same options for the reference.
reference::ScapeOptions reference_options(const StepOptions& options);

/// A stretch of one lane, from the first of its work to the last.
struct Phase {
  std::string name;
  Event begin;
  Event end;
};

/// A collective; bytes are the nccl-tests size.
struct Call {
  std::string name;
  reference::Collective kind = reference::Collective::all_reduce;
  std::size_t bytes = 0;
};
/// What a rank sends for a call on a ring.
double ring_bytes(const Call& call, int ranks);

/// What a rank holds, on the host.
struct RankState {
  std::vector<float> weights;
  std::vector<float> moment;
  std::vector<float> residual;
  reference::Mask next_mask;  ///< for the next step; of the last one without a delay
};

class ScapeStep {
 public:
  /// All ranks begin with the same parameters. The backend outlives the step.
  ScapeStep(Backend& backend, std::vector<reference::Tensor> tensors,
            std::span<const float> parameters, StepOptions options);

  /// gradient: all elements, on the device, complete when the compute lane gets here; unchanged
  /// until the compute lane is past the step.
  void enqueue(const float* gradient, double learning_rate);

  /// Of the last step enqueued.
  const std::vector<Phase>& phases() const { return phases_; }
  const std::vector<Call>& calls() const { return calls_; }

  /// Waits for all lanes.
  RankState state();
  /// Of the last step, after all lanes have been waited for; 0 and 1 without a limit on the norm.
  kernels::Clip clip() const { return host_clip_ != nullptr ? *host_clip_ : kernels::Clip{}; }

 private:
  /// A mask of all elements on the device and the event from which on it is there.
  struct DeviceMask {
    std::uint32_t* words = nullptr;
    std::uint64_t* offsets = nullptr;
    Event ready;
  };
  /// Elements of the flat buffer that this rank owns.
  struct Part {
    kernels::Range range;
    std::size_t pieces = 0;
    std::size_t chunks = 0;
  };

  void place_tables();
  void place_state(std::span<const float> parameters);
  void place_scratch();

  template <class Enqueue>
  void phase(const std::string& name, Lane lane, Enqueue enqueue);
  void with_known_mask(const float* gradient, const kernels::Coefficients<float>& c);
  void with_mask_of_this_step(const float* gradient, const kernels::Coefficients<float>& c);
  void accumulate(const float* gradient, kernels::MaskView mask,
                  const kernels::Coefficients<float>& c);
  void make_mask(DeviceMask& mask, int step);
  void send_payload();
  void find_clip(const kernels::Coefficients<float>& c);
  void update_alone(const kernels::Coefficients<float>& c);
  void update_by_owners(const kernels::Coefficients<float>& c);
  ScatterAdamS scatter(const kernels::Coefficients<float>& c) const;

  kernels::MaskView view(const DeviceMask& mask) const {
    return {mask.words, mask.offsets, elements_};
  }
  DeviceMask& current() { return masks_[current_]; }
  const DeviceMask& current() const { return masks_[current_]; }
  bool sends_weights() const;
  /// Elements selected by the mask of a step, of all ranks.
  std::size_t selected(int step) const;
  double density(int step) const;
  Lane mask_lane() const {
    return options_.mask_path == MaskPath::own ? Lane::mask : Lane::payload;
  }

  Backend& backend_;
  std::vector<reference::Tensor> tensors_;
  StepOptions options_;
  reference::Ownership parts_;
  std::size_t elements_;
  Part own_;
  std::size_t padded_bytes_ = 0;  ///< of one owner's packed mask
  int steps_ = 0;

  StagedState residual_;
  StagedState replica_;
  float* moment_ = nullptr;
  float* master_ = nullptr;  ///< weights of the own part, where owners send theirs
  DeviceMask masks_[2];
  std::size_t current_ = 0;

  float* payload_ = nullptr;
  float* sent_weights_ = nullptr;
  Event payload_done_;
  float* scores_ = nullptr;
  std::uint8_t* wire_ = nullptr;  ///< of all owners
  std::uint32_t* wire_tile_counts_ = nullptr;
  std::uint64_t* scan_scratch_ = nullptr;
  kernels::MaskPart* mask_parts_ = nullptr;
  kernels::SelectPiece* pieces_ = nullptr;  ///< one row per density
  Select select_;
  double* norm_partial_ = nullptr;
  kernels::Clip* clip_ = nullptr;
  kernels::Clip* host_clip_ = nullptr;

  std::vector<Phase> phases_;
  std::vector<Call> calls_;
};

}  // namespace scapesim::step
