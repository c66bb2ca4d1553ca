// SPDX-License-Identifier: Apache-2.0
// Every key a profile may hold: the reader, its range checks and the documentation use this table.
#include <deque>
#include <fmt/format.h>

#include "sim/cost/network_terms.hpp"
#include "sim/cost/profile.hpp"

namespace scapesim::cost {

namespace {

/// What a profile may say of one algorithm with one protocol.
struct ModeKey {
  std::string_view what;
  std::string_view help;
  double lowest;
  double highest;
  bool inside;  ///< also of calls inside one node
};
constexpr ModeKey kModeNumbers[] = {
    {"base_latency_s", "once per call; absent: 0", 0, 1, true},
    {"hop_latency_s", "per step between nodes; absent: network.hop_latency_s", 0, 1, false},
    {"node_hop_latency_s", "per step inside a node; absent: network.node_hop_latency_s", 0, 1,
     true},
    {"from_B", "smallest call it is used for unless told to; absent: none", 0, 1e15, true},
    {"below_B", "smallest call it is no longer used for; absent: none", 0, 1e15, true},
};
constexpr ModeKey kModeCurves[] = {
    {"efficiency", "share of the line rate reached, over the bytes a rank passes on at a time",
     1e-6, 1, true},
    {"node_efficiency", "the same of links inside the node; absent: network.node_efficiency", 1e-6,
     1, false},
};

/// Appends the rows of every mode; the texts live as long as the program.
void add_mode_keys(std::vector<ProfileKey>& rows, std::span<const ModeKey> keys) {
  static std::deque<std::string> texts;
  for (const Scope scope : {Scope::inside, Scope::between})
    for (const auto& [algorithm, name] : names<graph::Algorithm>())
      for (const auto& [protocol, word] : names<graph::Protocol>())
        for (const ModeKey& key : keys) {
          if (!has_protocol(algorithm, protocol) || (scope == Scope::inside && !key.inside))
            continue;
          texts.push_back(mode_key(scope, algorithm, protocol, key.what));
          rows.push_back({texts.back(), key.help, key.lowest, key.highest, false});
        }
}

const std::vector<ProfileKey>& plain_number_keys() {
  static const std::vector<ProfileKey> rows = {
      {"network.efficiency", "share of a NIC's line rate that large messages reach", 0.01, 1, true},
      {"network.transport_cap_Bps",
       "what the transport moves per NIC and direction; absent: no cap", 1e6, 1e13, false},
      {"network.crossing_cap_Bps",
       "network.transport_cap_Bps of groups that have several ranks in a node and a NIC for each: "
       "what one receives another sends, by a NIC far from it; absent: no other cap",
       1e6, 1e13, false},
      {"network.hop_latency_s", "latency per ring step of a bulk collective; absent: the fabric's",
       0, 1, false},
      {"network.small_below_B", "collectives below this size run in another regime (protocol)", 1,
       1e13, false},
      {"network.small_efficiency", "network.efficiency of that regime; absent: the same", 1e-6, 1,
       false},
      {"network.small_hop_latency_s", "network.hop_latency_s of that regime; absent: the same", 0,
       1, false},
      {"network.nvls_ranks", "fewest ranks of a node for which NVLS is used; absent: any number", 1,
       1e6, false},
      {"network.node_efficiency", "share of the line rate inside a node; absent: 1", 0.01, 1,
       false},
      {"network.node_hop_latency_s", "latency per ring step inside a node; absent: 0", 0, 1, false},
      {"network.smallest_fitted_B",
       "smallest collective that hop latency was fitted to: smaller ones are extrapolated", 1, 1e13,
       false},
      {"network.hop_ratio", "latency of a step inside a node over one between nodes, in fits", 0,
       10, false},
      {"network.base_latency_s", "once per call, where no mode says so; absent: 0", 0, 1, false},
      {"network.scalar_latency_s",
       "latency per tree step of a message of a few bytes; absent: the fabric's", 0, 1, false},
      {"gemm.efficiency", "share of peak that a very large GEMM reaches", 0.01, 1, true},
      {"gemm.efficiency_fp8", "the same for fp8; absent: that of bf16", 0.01, 1, false},
      {"gemm.efficiency_mxfp8", "the same for mxfp8; absent: that of fp8", 0.01, 1, false},
      {"gemm.efficiency_nvfp4", "the same for nvfp4; absent: that of fp8", 0.01, 1, false},
      {"gemm.efficiency_tf32", "the same for fp32 by tf32 units; absent: that of bf16", 0.01, 1,
       false},
      {"gemm.scale", "sustained over short-benchmark GEMM rate on this machine", 0.1, 2, true},
      {"gemm.k_half_B", "bytes of k whose loop costs as much as a tile's prologue and epilogue", 0,
       1e5, true},
      {"gemm.k_half_accumulate_B",
       "gemm.k_half_B where an fp32 accumulator is added to; absent: the same", 0, 1e5, false},
      {"gemm.tile_m", "rows of the large output tile", 8, 4096, true},
      {"gemm.tile_n", "columns of the large output tile", 8, 4096, true},
      {"gemm.small_tile_efficiency", "rate of the half tile over that of the large one", 0.1, 1,
       true},
      {"gemm.wave_share", "share of the last wave's idle part that costs time; absent: 1", 0, 1,
       false},
      {"gemm.unaligned_efficiency",
       "share of dense bf16 peak of products whose rows do not begin at multiples of 16 bytes; "
       "absent: as others",
       1e-3, 1, false},
      {"gemm.group_launch_s", "per further group of a grouped GEMM; absent: hbm.launch_s", 0, 1e-3,
       false},
      {"attention.half_waves",
       "waves of 128-query blocks at which forward attention reaches half its rate; absent: 0", 0,
       100, false},
      {"attention.backward_half_waves", "the same for the backward pass; absent: 0", 0, 100, false},
      {"attention.diagonal_tokens",
       "tokens by which computed tiles reach over the mask's edge; absent: 0", 0, 4096, false},
      {"attention.backward_ratio", "FLOP rate of the backward pass over the forward pass", 0.1, 2,
       true},
      {"attention.flash1_ratio", "rate of FlashAttention 1 over the curves; absent: 1", 0.05, 2,
       false},
      {"attention.flash1_backward_ratio", "the same backward; absent: as forward", 0.05, 2, false},
      {"attention.triton_ratio", "rate of FlashAttention in Triton 1 and 2.0; absent: 1", 0.05, 2,
       false},
      {"attention.triton_backward_ratio", "the same backward; absent: as forward", 0.05, 2, false},
      {"attention.flash2_ratio", "rate of FlashAttention 2 over the curves; absent: 1", 0.05, 2,
       false},
      {"attention.flash2_backward_ratio", "the same backward; absent: as forward", 0.05, 2, false},
      {"hbm.bandwidth_Bps", "achieved by element-wise kernels, reads and writes together", 1e9,
       1e14, true},
      {"hbm.launch_s", "one kernel's launch gap on a busy stream", 0, 1e-3, true},
      {"hbm.scatter_add_per_s",
       "elements a second that scatter_add adds to memory by atomics; absent: bandwidth decides",
       1e8, 1e15, false},
      {"copy.h2d_Bps", "large pinned host-to-device copy", 1e8, 1e13, true},
      {"copy.d2h_Bps", "large pinned device-to-host copy", 1e8, 1e13, true},
      {"copy.staged_Bps", "tensor-by-tensor copies of the released SCAPE code", 1e8, 1e13, true},
      {"copy.latency_s", "start of one copy", 0, 1e-2, true},
      {"host.step_s", "host work and idle GPU per step outside the micro-batches", 0, 10, true},
      {"host.launch_s",
       "host time per kernel launched, framework included; a layer takes at least that for all its "
       "kernels; absent: 0, as with CUDA graphs",
       0, 1e-2, false},
      {"host.micro_batch_s", "the same per micro-batch", 0, 10, true},
      {"memory.context_B", "CUDA and NCCL memory outside the framework's allocator", 0, 1e11, true},
      {"memory.fragmentation",
       "what the allocator reserves beyond activations and temporaries, as a share of them; "
       "absent: "
       "0",
       0, 1, false},
      {"gpu.clock_scale",
       "sustained clock over that of benchmarks: of matrix products and attention; absent: 1", 0.1,
       2, false},
      {"gpu.speed_spread",
       "standard deviation of what equal GPUs take to compute the same, over its mean; absent: 0",
       0, 0.2, false},
      {"gpu.overlap_slowdown",
       "how much longer kernels take while a collective runs beside them; absent: 0", 0, 1, false},
      {"power.gpu_W", "mean board power while training", 1, 1e5, false},
      {"model.discrepancy", "what the equations leave out, as a factor on the step; value 1", 1, 1,
       true},
  };
  return rows;
}

const std::vector<ProfileKey>& plain_curve_keys() {
  static const std::vector<ProfileKey> rows = {
      {"attention.forward.d64", "share of dense bf16 peak over sequence, causal counted half", 1e-4,
       1, true},
      {"attention.forward.d128", "the same for heads of 128", 1e-4, 1, true},
      {"attention.forward.d256", "the same for heads of 256", 1e-4, 1, true},
      {"attention.backward.d64",
       "backward, all three widths or none; absent: forward times attention.backward_ratio", 1e-4,
       1, false},
      {"attention.backward.d128", "the same for heads of 128", 1e-4, 1, false},
      {"attention.backward.d256", "the same for heads of 256", 1e-4, 1, false},
      {"kernel.local_pass",
       "SCAPE's fused local pass: share of hbm.bandwidth_Bps over the bytes it moves; absent: all",
       1e-5, 4, false},
      {"kernel.select", "the same for top-k threshold and mask", 1e-5, 4, false},
      {"kernel.update", "the same for scatter and AdamS", 1e-5, 4, false},
      {"kernel.write_back", "the same for the replica's write-back", 1e-5, 4, false},
  };
  return rows;
}

}  // namespace

std::span<const ProfileKey> number_keys() {
  static const std::vector<ProfileKey> rows = [] {
    std::vector<ProfileKey> all = plain_number_keys();
    add_mode_keys(all, kModeNumbers);
    return all;
  }();
  return rows;
}

std::span<const ProfileKey> curve_keys() {
  static const std::vector<ProfileKey> rows = [] {
    std::vector<ProfileKey> all = plain_curve_keys();
    add_mode_keys(all, kModeCurves);
    return all;
  }();
  return rows;
}

}  // namespace scapesim::cost
