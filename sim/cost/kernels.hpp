// SPDX-License-Identifier: Apache-2.0
// How long kernels take on a GPU, from their shapes and a profile. No concurrency in here.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::cost {

/// C[m,n] (+)= A[m,k] B[k,n]; FLOPs 2mnk. With groups: so many such products in one launch (the
/// experts of a rank); m, n and k are those of each, the mean where groups are uneven.
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool accumulate_fp32 = false;  ///< weight gradient added to an fp32 buffer in the epilogue
  std::int64_t groups = 1;
  bool batched = false;  ///< groups at one stride: a single launch for all of them
  bool aligned = true;   ///< [M451] rows of the matrices begin at multiples of 16 bytes
};

/// Flash attention of one layer.
struct Attention {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;  ///< of the queries
  std::int64_t heads = 0;     ///< of the queries
  std::int64_t head_dim = 0;  ///< of queries and keys
  bool backward = false;
  bool causal = true;                               ///< the last query sees the last key
  std::optional<std::int64_t> kv_heads = {};        ///< none: as many as query heads
  std::optional<std::int64_t> kv_sequence = {};     ///< none: as long as the queries
  std::optional<std::int64_t> value_head_dim = {};  ///< none: as wide as keys
  std::optional<std::int64_t> window = {};          ///< keys that a query sees at most
  std::optional<double> document = {};  ///< [M432] tokens of documents that see only themselves
  spec::AttentionCore core = spec::AttentionCore::flash;  ///< [M450] whose kernel
};

/// Element-wise or reduction kernels bound by memory traffic; `launches` kernels.
struct Pass {
  Bytes traffic;
  int launches = 1;
  std::string_view kernel = {};  ///< whose curve kernel.<name> counts, where the profile has one
  double added = 0;              ///< elements that atomics add to memory
};

/// FLOPs executed [M2].
Flops flops_of(const Gemm& gemm);
/// Query-key pairs that one head of one sequence computes; s^2/2 under the causal mask.
double visible_pairs(const Attention& attention);
Flops flops_of(const Attention& attention);

/// Of equal GPUs that work together.
struct Fleet {
  double slowest = 1;           ///< [M405] what the slowest takes to compute, over the mean
  double overlap_slowdown = 0;  ///< [M406] share by which kernels beside a collective take longer
};

/// [M405] Expected largest of so many standard normal draws; 0 for one.
double expected_largest(int draws);

/// What a job's GPUs do to each other's kernels: the cluster's word, or else the profile's.
Fleet fleet_of(const Profile& profile, const spec::Cluster& cluster);

/// [M406] What an exchange of time `exchange` adds to a kernel of time `kernel` that it runs
/// beside.
Seconds added_beside(Seconds exchange, Seconds kernel, double overlap_slowdown);

/// The numbers of a profile that kernels need, read once.
class KernelCosts {
 public:
  KernelCosts(const Profile& profile, const spec::Gpu& gpu, spec::Precision precision,
              const Fleet& fleet = {});

  Seconds time(const Gemm& gemm) const;            ///< [M10]
  Seconds time(const Attention& attention) const;  ///< [M12]
  Seconds time(const Pass& pass) const;            ///< [M13]
  /// [M177] What the host takes to launch so many kernels; 0 where launches never hold a GPU up.
  Seconds launch_time(int kernels) const { return static_cast<double>(kernels) * host_launch_; }
  /// [M406]
  double overlap_slowdown() const { return overlap_slowdown_; }

 private:
  Seconds arithmetic(const Gemm& gemm) const;
  /// [M450] Rate of a named library over that of the sampled one.
  double library_share(const Attention& attention) const;
  /// Share of peak of a full GPU at a head width and so many keys per query.
  double attention_share(const Attention& attention, double head_dim, double keys) const;
  /// [M173] What of that share is left: tiles along the mask's edge, few blocks of queries.
  double attention_fill(const Attention& attention, double keys) const;

  FlopsPerSecond gemm_rate_;       ///< large-shape rate
  FlopsPerSecond unaligned_rate_;  ///< [M451] the same of matrices whose rows are not aligned
  double element_bytes_;           ///< of A and B
  double k_half_, k_half_added_;   ///< bytes of k at which prologue and epilogue cost as much as
                                   ///< the loop; when an fp32 accumulator is added to
  double tile_m_, tile_n_;
  double small_tile_efficiency_;
  double wave_share_;     ///< share of an unfinished wave's idle part that costs time
  Seconds group_launch_;  ///< per further group of a grouped GEMM
  double multiprocessors_;
  FlopsPerSecond attention_peak_;
  double backward_ratio_;
  double half_waves_, backward_half_waves_;  ///< waves of query blocks at which half is reached
  struct Library {
    double forward = 1, backward = 1;  ///< rates over those of the sampled library
  };
  std::map<spec::AttentionCore, Library> libraries_;
  double diagonal_;  ///< tokens by which whole tiles reach over the mask's edge
  BytesPerSecond hbm_;
  double adds_;  ///< atomic additions a second; 0: bandwidth decides
  Seconds launch_;
  Seconds host_launch_;
  double overlap_slowdown_;
  std::array<Curve, 3> attention_curves_;
  std::map<std::string, Curve, std::less<>> kernel_curves_;  ///< by kernel
  std::optional<std::array<Curve, 3>> backward_curves_;      ///< where all widths have one
};

/// Head dimensions at which attention curves are sampled, ascending: attention.forward.d<dim>.
inline constexpr std::array<std::int64_t, 3> kSampledHeadDims = {64, 128, 256};

/// Dense peak for GEMMs of a precision. 0 when the part has no such units.
FlopsPerSecond peak(const spec::Gpu& gpu, spec::Precision precision);

}  // namespace scapesim::cost
