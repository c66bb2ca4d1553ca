// SPDX-License-Identifier: Apache-2.0
// The released code has two faults that are not of the method and not here: with the distributed
// optimizer it averages only each owner's own values, so that the other ranks' gradients are lost
// (here every rank sends its values at all selected positions), and on one path it adds the
// residual twice (here once, in the local moment).
#include "kernels/reference/scape.hpp"

#include <cmath>
#include <utility>

#include "sim/base/check.hpp"

namespace scapesim::reference {

namespace {

/// Values at the selected positions.
template <class T>
std::vector<T> gathered(const std::vector<T>& values, const Mask& mask) {
  std::vector<T> selected;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (mask[i]) selected.push_back(values[i]);
  return selected;
}

/// Selected elements before a position: where its value stands in the payload.
std::size_t selected_before(const Mask& mask, std::size_t position) {
  return count(std::span(mask).first(position));
}

}  // namespace

template <class T>
Scape<T>::Scape(std::vector<Tensor> tensors, const std::vector<T>& parameters, ScapeOptions options,
                Communicator& communicator)
    : tensors_(std::move(tensors)),
      options_(options),
      communicator_(communicator),
      parts_(ownership(tensors_, communicator.ranks(), options.owners)) {
  const std::size_t n = parameters.size();
  SCAPESIM_CHECK(total_of(tensors_) == n, "{} parameters", n);
  SCAPESIM_CHECK(options.density > 0 && options.density <= 1, "density {}", options.density);
  SCAPESIM_CHECK(options.mask_delay == 0 || options.mask_delay == 1, "{}", options.mask_delay);
  SCAPESIM_CHECK(options.adam.epsilon > 0, "epsilon {}", options.adam.epsilon);
  SCAPESIM_CHECK(options.sharding == Sharding::none || options.owners == Owners::even,
                 "an owner is the optimizer's shard");
  for (const auto& part : parts_) {
    Rank rank{.residual = {options.residual, std::vector<T>(n), options.chunk},
              .replica = {options.replica, parameters, options.chunk},
              .moment = std::vector<T>(n),
              .master = {},
              .mask = {},
              .next = {}};
    if (sends_weights()) {
      const std::span<const T> shard(parameters.data() + begin_of(part), size_of(part));
      rank.master.assign(shard.begin(), shard.end());
    }
    ranks_.push_back(std::move(rank));
  }
}

template <class T>
StepReport Scape<T>::step(const PerRank<T>& gradients, double learning_rate) {
  SCAPESIM_CHECK(gradients.size() == ranks_.size(), "{} gradients", gradients.size());
  if (options_.non_finite == NonFinite::skip && !all_finite(gradients)) return {.skipped = true};

  const Coefficients<T> c = coefficients<T>(options_.adam, steps_ + 1, learning_rate);
  const PerRank<T> moments = local_pass(gradients, c);
  if (options_.mask_delay == 1) {
    PerRank<std::uint8_t> next =
        exchange_masks(moments, density_at(options_.density, options_.density_warmup, steps_ + 1));
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      ranks_[rank].next = std::move(next[rank]);
  }
  Payload payload = exchange_payload(moments, c);
  const StepReport report = clip(payload, c);
  if (sends_weights())
    update_by_owners(payload, c);
  else
    update_alone(payload, c);
  replace_moments(payload);
  ++steps_;
  return report;
}

template <class T>
bool Scape<T>::all_finite(const PerRank<T>& gradients) {
  PerRank<float> faulty;
  for (const auto& gradient : gradients)
    faulty.push_back(
        {std::ranges::all_of(gradient, [](T g) { return std::isfinite(g); }) ? 0.0F : 1.0F});
  communicator_.all_reduce_sum("finite flag", faulty);
  return faulty[0][0] == 0;
}

// mt = b1 m + (1-b1) g + r; the residual keeps what the mask leaves out. A mask of the step before
// is there already, and one pass does both; without one (first step, or no delay) it is made in
// between.
template <class T>
PerRank<T> Scape<T>::local_pass(const PerRank<T>& gradients, const Coefficients<T>& c) {
  const bool known = options_.mask_delay == 1 && steps_ > 0;
  PerRank<T> moments;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& own = ranks_[rank];
    if (known) own.mask = std::move(own.next);
    std::vector<T> local(own.moment.size());
    own.residual.visit([&](std::size_t first, std::span<T> residual) {
      for (std::size_t j = 0; j < residual.size(); ++j) {
        const std::size_t i = first + j;
        local[i] = reference::moment(c, own.moment[i], gradients[rank][i]) + residual[j];
        if (known) residual[j] = own.mask[i] ? T(0) : local[i];
      }
    });
    moments.push_back(std::move(local));
  }
  if (known) return moments;

  PerRank<std::uint8_t> masks =
      exchange_masks(moments, density_at(options_.density, options_.density_warmup, steps_));
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& own = ranks_[rank];
    own.mask = std::move(masks[rank]);
    own.residual.visit([&](std::size_t first, std::span<T> residual) {
      for (std::size_t j = 0; j < residual.size(); ++j)
        residual[j] = own.mask[first + j] ? T(0) : moments[rank][first + j];
    });
  }
  return moments;
}

template <class T>
PerRank<std::uint8_t> Scape<T>::exchange_masks(const PerRank<T>& moments, double density) {
  return options_.mask_partition == MaskPartition::owner ? exchange_own_masks(moments, density)
                                                         : exchange_global_masks(moments, density);
}

// [M42] An owner looks at its own moments only; all gather the owners' bits and cut off the
// padding.
template <class T>
PerRank<std::uint8_t> Scape<T>::exchange_own_masks(const PerRank<T>& moments, double density) {
  PerRank<std::uint8_t> wires;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto& part = parts_[rank];
    const std::span<const T> scores(moments[rank].data() + begin_of(part), size_of(part));
    wires.push_back(wire_of(mask_of_part<T>(part, scores, density), options_.mask_format));
  }
  PerRank<std::uint8_t> masks;
  for (const auto& all : communicator_.all_gather("mask all-gather", wires)) {
    const std::size_t padded = all.size() / ranks_.size();
    Mask mask;
    for (std::size_t owner = 0; owner < ranks_.size(); ++owner) {
      const Mask own = mask_of_wire(std::span(all).subspan(owner * padded, padded),
                                    size_of(parts_[owner]), options_.mask_format);
      mask.insert(mask.end(), own.begin(), own.end());
    }
    masks.push_back(std::move(mask));
  }
  return masks;
}

// [M45] The scheme that owners' masks replace: every rank selects for itself, the masks fill in.
template <class T>
PerRank<std::uint8_t> Scape<T>::exchange_global_masks(const PerRank<T>& moments, double density) {
  const Ownership whole = ownership(tensors_, 1, Owners::tensor);
  PerRank<std::uint8_t> wires;
  for (const auto& local : moments)
    wires.push_back(wire_of(mask_of_part<T>(whole[0], local, density), options_.mask_format));
  communicator_.all_reduce_or("mask all-reduce", wires);
  PerRank<std::uint8_t> masks;
  for (const auto& wire : wires)
    masks.push_back(mask_of_wire(wire, total_of(tensors_), options_.mask_format));
  return masks;
}

// [M47] Every rank's moments at all selected positions; no indices travel. The gradient that feeds
// the second moment is rebuilt from the averaged moment: it is the mean gradient plus the mean
// residual / (1-b1) that the mask releases. Two buffers reduce the same quantity beside it.
template <class T>
typename Scape<T>::Payload Scape<T>::exchange_payload(const PerRank<T>& moments,
                                                      const Coefficients<T>& c) {
  PerRank<T> before;
  Payload payload;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    before.push_back(gathered(ranks_[rank].moment, ranks_[rank].mask));
    payload.moment.push_back(gathered(moments[rank], ranks_[rank].mask));
  }
  const auto gradients_behind = [&] {
    PerRank<T> gradients = payload.moment;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      for (std::size_t j = 0; j < gradients[rank].size(); ++j)
        gradients[rank][j] = gradient_behind(c, before[rank][j], gradients[rank][j]);
    return gradients;
  };
  if (options_.payload_buffers == PayloadBuffers::two) {
    payload.gradient = gradients_behind();
    communicator_.all_reduce_mean("gradient payload all-reduce", payload.gradient);
  }
  communicator_.all_reduce_mean("payload all-reduce", payload.moment);
  if (options_.payload_buffers == PayloadBuffers::one) payload.gradient = gradients_behind();
  return payload;
}

// The norm is over the selected positions, which every rank has: nothing to communicate. When the
// clip fires, the moment is made anew from the clipped gradient, as a dense step would.
template <class T>
StepReport Scape<T>::clip(Payload& payload, const Coefficients<T>& c) const {
  StepReport report;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    double squares = 0;
    for (const T g : payload.gradient[rank])
      squares += static_cast<double>(g) * static_cast<double>(g);
    const double norm = std::sqrt(squares);
    const double factor = clip_factor(options_.adam, norm);
    if (rank == 0)
      report = {.norm = norm, .clip_factor = factor, .selected = payload.moment[0].size()};
    if (factor == 1) continue;
    const std::vector<T> before = gathered(ranks_[rank].moment, ranks_[rank].mask);
    for (std::size_t j = 0; j < before.size(); ++j) {
      T& gradient = payload.gradient[rank][j];
      gradient *= static_cast<T>(factor);
      payload.moment[rank][j] = reference::moment(c, before[j], gradient);
    }
  }
  return report;
}

// AdamS from the element `first` on; elements off the mask have no moment and only decay.
template <class T>
void Scape<T>::update_weights(std::size_t rank, const Payload& payload, const Coefficients<T>& c,
                              std::size_t first, std::span<T> weights) const {
  const Rank& own = ranks_[rank];
  std::size_t next = selected_before(own.mask, first);
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const bool selected = own.mask[first + j] != 0;
    const T now = selected ? payload.moment[rank][next] : T(0);
    const T gradient = selected ? payload.gradient[rank][next] : T(0);
    weights[j] = weight(c, weights[j], now, adams_second(c, own.moment[first + j], gradient));
    next += selected ? 1 : 0;
  }
}

template <class T>
void Scape<T>::update_alone(const Payload& payload, const Coefficients<T>& c) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank].replica.visit([&](std::size_t first, std::span<T> weights) {
      update_weights(rank, payload, c, first, weights);
    });
}

// [M48] Owners update their shards and send the weights on the mask, zeros elsewhere; the replicas
// take them over and decay off the mask.
template <class T>
void Scape<T>::update_by_owners(const Payload& payload, const Coefficients<T>& c) {
  PerRank<T> weights;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& own = ranks_[rank];
    const std::size_t first = begin_of(parts_[rank]);
    update_weights(rank, payload, c, first, own.master);
    std::vector<T> sent(payload.moment[rank].size());
    std::size_t next = selected_before(own.mask, first);
    for (std::size_t j = 0; j < own.master.size(); ++j)
      if (own.mask[first + j]) sent[next++] = own.master[j];
    weights.push_back(std::move(sent));
  }
  communicator_.all_reduce_sum("weight payload all-reduce", weights);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    std::size_t next = 0;
    ranks_[rank].replica.visit([&](std::size_t first, std::span<T> values) {
      for (std::size_t j = 0; j < values.size(); ++j)
        values[j] = ranks_[rank].mask[first + j] ? weights[rank][next++] : c.kept * values[j];
    });
  }
}

template <class T>
void Scape<T>::replace_moments(const Payload& payload) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& own = ranks_[rank];
    std::size_t next = 0;
    for (std::size_t i = 0; i < own.moment.size(); ++i)
      own.moment[i] = own.mask[i] ? payload.moment[rank][next++] : T(0);
  }
}

template class Scape<float>;
template class Scape<double>;

}  // namespace scapesim::reference
