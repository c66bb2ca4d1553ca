// SPDX-License-Identifier: Apache-2.0
// How long kernels take on a GPU, from their shapes and a profile. No concurrency in here.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/units.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::cost {

/// C[m,n] (+)= A[m,k] B[k,n]; FLOPs 2mnk.
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool accumulate_fp32 = false;  ///< weight gradient added to an fp32 buffer in the epilogue
};

/// Flash attention of one layer, causal.
struct Attention {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  bool backward = false;
};

/// Element-wise or reduction kernels bound by memory traffic; `launches` kernels.
struct Pass {
  Bytes traffic;
  int launches = 1;
};

/// FLOPs executed [M2].
Flops flops_of(const Gemm& gemm);
Flops flops_of(const Attention& attention);

/// The numbers of a profile that kernels need, read once.
class KernelCosts {
 public:
  KernelCosts(const Profile& profile, const spec::Gpu& gpu, spec::Precision precision);

  Seconds time(const Gemm& gemm) const;            ///< [M10]
  Seconds time(const Attention& attention) const;  ///< [M12]
  Seconds time(const Pass& pass) const;            ///< [M13]

 private:
  /// Share of peak at one sampled head dimension and sequence length.
  double attention_efficiency(std::int64_t head_dim, std::int64_t sequence) const;

  FlopsPerSecond gemm_rate_;  ///< large-shape rate
  double element_bytes_;      ///< of A and B
  double k_half_;  ///< bytes of k at which prologue and epilogue cost as much as the loop
  double tile_m_, tile_n_;
  double small_tile_efficiency_;
  double multiprocessors_;
  FlopsPerSecond attention_peak_;
  double backward_ratio_;
  BytesPerSecond hbm_;
  Seconds launch_;
  std::array<Curve, 3> attention_curves_;
};

/// Head dimensions at which attention curves are sampled, ascending: attention.forward.d<dim>.
inline constexpr std::array<std::int64_t, 3> kSampledHeadDims = {64, 128, 256};

/// Dense peak for GEMMs of a precision. 0 when the part has no such units.
FlopsPerSecond peak(const spec::Gpu& gpu, spec::Precision precision);

}  // namespace scapesim::cost
