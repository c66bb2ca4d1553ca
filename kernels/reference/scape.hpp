// SPDX-License-Identifier: Apache-2.0
// SCAPE (arXiv 2607.01678) on AdamS for P ranks in one process: what the CUDA and NCCL path has to
// reproduce. Every rank keeps its own copy of everything, so that a divergence shows. Clear, not
// fast: moments and masks are kept unpacked at all N.
#pragma once

#include "kernels/reference/dense.hpp"
#include "kernels/reference/selection.hpp"
#include "kernels/reference/stored.hpp"

namespace scapesim::reference {

/// owner: a rank makes the mask of its part; global: every rank of all elements, OR-ed.
enum class MaskPartition { owner, global };
/// distributed: the optimizer's shards are the even parts; every rank has an fp32 replica.
enum class Sharding { none, distributed };
/// With the distributed optimizer: weights: owners send their updated weights on the mask; none:
/// every rank updates its replica alone.
enum class SecondPayload { weights, none };
/// one: the gradient is rebuilt from the reduced moment; two: it is reduced beside it.
enum class PayloadBuffers { one, two };
/// propagate: what is not finite on its owner is selected first and reaches every rank; on another
/// rank it stays in the residual until its position is selected. skip: an all-reduce of one flag
/// per step, and a step with such a gradient changes nothing on any rank.
enum class NonFinite { propagate, skip };

struct ScapeOptions {
  Adam adam;
  double density = 0.1;
  int density_warmup = 0;  ///< steps of a geometric fall from 1 to density
  Owners owners = Owners::even;
  MaskPartition mask_partition = MaskPartition::owner;
  MaskFormat mask_format = MaskFormat::packed;
  int mask_delay = 1;  ///< steps between making and using a mask: 0 or 1
  PayloadBuffers payload_buffers = PayloadBuffers::one;
  Sharding sharding = Sharding::none;
  SecondPayload second_payload = SecondPayload::weights;
  Storage residual = Storage::resident;
  Storage replica = Storage::resident;  ///< all fp32 weights of a rank
  std::size_t chunk = 4096;             ///< elements of a staging buffer
  NonFinite non_finite = NonFinite::propagate;
};

template <class T>
class Scape {
 public:
  /// All ranks begin with the same parameters.
  Scape(std::vector<Tensor> tensors, const std::vector<T>& parameters, ScapeOptions options,
        Communicator& communicator);

  /// gradients[rank]
  StepReport step(const PerRank<T>& gradients, double learning_rate);

  const std::vector<T>& parameters(std::size_t rank) const { return at(rank).replica.values(); }
  const std::vector<T>& moment(std::size_t rank) const { return at(rank).moment; }
  const std::vector<T>& residual(std::size_t rank) const { return at(rank).residual.values(); }
  /// The mask of the last step, and the one made in it for the next (empty when there is no delay).
  const Mask& mask(std::size_t rank) const { return at(rank).mask; }
  const Mask& next_mask(std::size_t rank) const { return at(rank).next; }
  const Stored<T>& stored_residual(std::size_t rank) const { return at(rank).residual; }
  const Stored<T>& stored_replica(std::size_t rank) const { return at(rank).replica; }

 private:
  struct Rank {
    Stored<T> residual;
    Stored<T> replica;
    std::vector<T> moment;
    std::vector<T> master;  ///< weights of the own shard, with the distributed optimizer only
    Mask mask;
    Mask next;
  };
  /// Averaged values at the selected positions, in their order.
  struct Payload {
    PerRank<T> moment;
    PerRank<T> gradient;
  };

  const Rank& at(std::size_t rank) const { return ranks_[rank]; }
  bool sends_weights() const {
    return options_.sharding == Sharding::distributed &&
           options_.second_payload == SecondPayload::weights;
  }
  bool all_finite(const PerRank<T>& gradients);
  PerRank<T> local_pass(const PerRank<T>& gradients, const Coefficients<T>& c);
  PerRank<std::uint8_t> exchange_masks(const PerRank<T>& moments, double density);
  PerRank<std::uint8_t> exchange_own_masks(const PerRank<T>& moments, double density);
  PerRank<std::uint8_t> exchange_global_masks(const PerRank<T>& moments, double density);
  Payload exchange_payload(const PerRank<T>& moments, const Coefficients<T>& c);
  StepReport clip(Payload& payload, const Coefficients<T>& c) const;
  void update_weights(std::size_t rank, const Payload& payload, const Coefficients<T>& c,
                      std::size_t first, std::span<T> weights) const;
  void update_alone(const Payload& payload, const Coefficients<T>& c);
  void update_by_owners(const Payload& payload, const Coefficients<T>& c);
  void replace_moments(const Payload& payload);

  std::vector<Tensor> tensors_;
  ScapeOptions options_;
  Communicator& communicator_;
  Ownership parts_;
  std::vector<Rank> ranks_;
  int steps_ = 0;
};

}  // namespace scapesim::reference
