// SPDX-License-Identifier: Apache-2.0
#include "calib/shipped_network.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <span>

#include "calib/sweeps.hpp"
#include "sim/base/check.hpp"

namespace scapesim::calib {

namespace {

using cost::Factor;
using cost::Profile;
using cost::Provenance;
using graph::Algorithm;

/// A table that a profile rests on; later ones replace what earlier ones said of a mode. Tables of
/// one machine with several numbers of ranks are fitted together: the names begin alike.
struct Use {
  std::string_view sweep;
  Provenance kind = Provenance::published;  ///< assumed: of another machine, ranges widened
  std::optional<Algorithm> algorithm = {};  ///< as the numbers say, where the table does not
  Bytes from{};                             ///< its smaller calls are left out
};
constexpr Provenance kOther = Provenance::assumed;

/// Calls so large that they tell a share and no latency: 200G NICs are filled better than 400G
/// ones.
constexpr Bytes kLevelOnly{4294967296.0};

constexpr Use kAlps[] = {{"lambda-h100-4-gpus", kOther},
                         {"rtx-6000d-all-to-all", kOther},
                         {"gcp-a3-ultra-all-gather", kOther},
                         {"gcp-a3-mega-all-gather", kOther, {}, kLevelOnly},
                         {"alps-all-reduce"}};
constexpr Use kAlpsTcp[] = {{"lambda-h100-4-gpus", kOther}, {"alps-tcp-all-reduce"}};
constexpr Use kJupiter[] = {{"lambda-h100-4-gpus", kOther},
                            {"rtx-6000d-all-to-all", kOther},
                            {"gcp-a3-ultra-all-gather", kOther},
                            {"gcp-a3-mega-all-gather", kOther, {}, kLevelOnly},
                            {"nebius-all-reduce", kOther}};
constexpr Use kH100[] = {{"lambda-h100-4-gpus"},
                         {"dgx-h100-all-reduce"},
                         {"rtx-6000d-all-to-all", kOther},
                         {"gcp-a3-ultra-all-gather", kOther},
                         {"nebius-all-reduce"}};
constexpr Use kH100Efa[] = {{"lambda-h100-4-gpus"},
                            {"dgx-h100-all-reduce"},
                            {"rtx-6000d-all-to-all", kOther},
                            {"gcp-a3-ultra-all-gather", kOther},
                            {"aws-p5-all-reduce"}};
constexpr Use kH100Tcpxo[] = {{"lambda-h100-4-gpus"},
                              {"dgx-h100-all-reduce"},
                              {"rtx-6000d-all-to-all", kOther},
                              {"gcp-a3-mega-all-gather"},
                              {"gcp-a3-mega-all-reduce"}};
constexpr Use kH200[] = {{"lambda-h100-4-gpus", kOther},
                         {"azure-h200-all-reduce"},
                         {"h200-7-gpus-ring"},
                         {"h200-8-gpus"},
                         {"rtx-6000d-all-to-all", kOther},
                         {"gcp-a3-ultra-all-gather"},
                         {"nebius-all-reduce", kOther}};
constexpr Use kA10080[] = {{"vtrain-a100-"},
                           {"rtx-6000d-all-to-all", kOther},
                           {"oci-a100-40gb-all-reduce", kOther},
                           {"a100-four-nodes-all-reduce"}};
constexpr Use kA10080Efa[] = {{"vtrain-a100-", kOther},
                              {"rtx-6000d-all-to-all", kOther},
                              {"a100-four-nodes-all-reduce", kOther},
                              {"aws-p4de-all-reduce"}};
constexpr Use kA10080Opa[] = {{"lambda-h100-4-gpus", kOther},
                              {"rtx-6000d-all-to-all", kOther},
                              {"oci-a100-40gb-all-reduce", kOther},
                              {"a100-four-nodes-all-reduce", kOther}};
constexpr Use kA10040[] = {
    {"vtrain-a100-", kOther},
    {"rtx-6000d-all-to-all", kOther},
    {"a100-four-nodes-all-reduce", kOther},
    {"oci-a100-40gb-all-reduce"},
    {"oci-a100-40gb-all-reduce-nccl-2.29", Provenance::published, Algorithm::ring}};
constexpr Use kA100Pcie[] = {{"rtx-6000d-all-to-all", kOther},
                             {"a100-four-nodes-all-reduce", kOther}};
constexpr Use kB200[] = {{"azure-gb300-tray", kOther},
                         {"azure-h200-all-reduce", kOther},
                         {"b200-6-gpus-ring"},
                         {"b200-8-gpus"},
                         {"rtx-6000d-all-to-all", kOther},
                         {"gcp-a3-ultra-all-gather", kOther},
                         {"nebius-all-reduce", kOther},
                         {"gcp-a4-b200-all-reduce"}};
constexpr Use kGb200[] = {{"azure-gb300-tray", kOther},
                          {"azure-h200-all-reduce", kOther},
                          {"b200-8-gpus", kOther},
                          {"rtx-6000d-all-to-all", kOther},
                          {"gke-a4x-max-all-gather-job-set", kOther},
                          {"gcp-a4-b200-all-reduce", kOther},
                          {"coreweave-gb200-two-racks-all-reduce"}};

struct Network {
  std::string_view id;
  std::span<const Use> uses;
  int nvls_ranks = 0;  ///< 0: no NVLink switch
  /// What NCCL moves per NIC and direction where that is less than its line; 0: no cap.
  double transport_cap = 0;
  const char* cap_source = "";
};
constexpr Network kNetworks[] = {
    {"gh200-alps", kAlps},
    {"gh200-alps-tcp", kAlpsTcp},
    {"gh200-jupiter", kJupiter},
    {"h100-sxm", kH100, 5},
    {"h100-sxm-efa", kH100Efa, 5},
    {"h100-sxm-tcpxo", kH100Tcpxo, 5},
    {"h200-sxm", kH200, 5},
    {"a100-sxm-80gb", kA10080},
    {"a100-sxm-80gb-efa", kA10080Efa},
    {"a100-vtrain", kA10080},
    {"a100-sxm-40gb", kA10040},
    {"a100-pcie", kA100Pcie},
    {"b200-sxm", kB200, 6},
    {"gb200", kGb200, 6},
    {"a100-sxm-80gb-opa", kA10080Opa, 0, 5.06e9,
     "all-reduce of 4 GB over 4 nodes of 8 A100 on Jean Zay, one ring through one adapter: 40.5 "
     "Gbps (bigscience-workshop/bigscience, experiments/bandwidth/all_reduce_bench-a100-n4.txt); "
     "its README: NCCL does not use all of Omni-Path"},
};

/// What holds before any table is read.
Profile start_of(const Network& network) {
  Profile profile;
  profile.id = network.id;
  const auto put = [&](const char* key, double value, double low, double high, Factor factor,
                       Provenance kind, const char* source) {
    profile.numbers[key] = {value, low, high, factor, {kind, source}};
  };
  put("network.efficiency", 0.9, 0.75, 0.97, Factor::network, Provenance::assumed,
      "90 % of the NIC's line rate");
  put("network.node_efficiency", 0.78, 0.65, 0.85, Factor::network, Provenance::published,
      "235 of 300 GB/s of A100's links, the limit in NCCL's tuning table (NVIDIA/nccl, "
      "src/graph/tuning.cc)");
  put("network.node_hop_latency_s", 0.6e-6, 0.4e-6, 2e-6, Factor::latency, Provenance::published,
      "LL over NVLink in NCCL's tuning table (NVIDIA/nccl, src/graph/tuning.cc)");
  put("network.base_latency_s", 7e-6, 3e-6, 25e-6, Factor::latency, Provenance::published,
      "LL in NCCL's tuning table (NVIDIA/nccl, src/graph/tuning.cc): 6.6 to 6.8 us");
  put("network.hop_latency_s", 14e-6, 5e-6, 40e-6, Factor::latency, Provenance::published,
      "Simple between nodes in NCCL's tuning table (NVIDIA/nccl, src/graph/tuning.cc)");
  put("network.hop_ratio", 0.243, 0.1, 0.5, Factor::latency, Provenance::published,
      "3.4 over 14 us of Simple rings in NCCL's tuning table (NVIDIA/nccl, src/graph/tuning.cc)");
  put("network.scalar_latency_s", 8e-6, 3e-6, 35e-6, Factor::latency, Provenance::published,
      "LL trees of a few bytes between nodes, 3 to 20 us a step in nccl-tests tables "
      "(calib/data/collectives-points.csv)");
  if (network.nvls_ranks > 0)
    put("network.nvls_ranks", network.nvls_ranks, network.nvls_ranks, network.nvls_ranks,
        Factor::network, Provenance::published,
        "nccl-tests at 8 GiB: NVLS from 5 GPUs on H200, from 6 on B200, never at 4 "
        "(stas00/ml-engineering, network/README.md)");
  return profile;
}

/// Numbers of another machine are worth less: 15 % on rates, half to twice on latencies, at least.
void widen(Profile& profile) {
  for (auto& [key, number] : profile.numbers) {
    if (number.origin.kind != kOther || number.low == number.high) continue;
    const double spread = number.factor == Factor::network ? 0.15 : 0.5;
    number.low = std::min(number.low, number.value * (1 - spread));
    number.high = std::max(number.high, number.value * (1 + 2 * spread));
    if (number.factor == Factor::network) number.high = std::min(number.high, 1.0);
  }
  for (auto& [key, curve] : profile.curves) {
    if (curve.origin.kind != kOther) continue;
    curve.low_factor = std::min(curve.low_factor, 0.85);
    curve.high_factor = std::max(curve.high_factor, 1.15);
  }
}

bool is_family(const Use& use) { return use.sweep.ends_with('-'); }

std::string text_of(const Use& use) { return std::string(use.sweep) + (is_family(use) ? "*" : ""); }

/// The first table of a use, and the calls of all.
std::pair<const Sweep*, std::vector<TimedCall>> tables_of(const std::vector<Sweep>& sweeps,
                                                          const Use& use) {
  std::pair<const Sweep*, std::vector<TimedCall>> tables{nullptr, {}};
  for (const Sweep& sweep : sweeps) {
    if (is_family(use) ? !sweep.name.starts_with(use.sweep) : sweep.name != use.sweep) continue;
    if (tables.first == nullptr) tables.first = &sweep;
    tables.second.insert(tables.second.end(), sweep.calls.begin(), sweep.calls.end());
  }
  SCAPESIM_CHECK(tables.first != nullptr, "no sweep {}", use.sweep);
  return tables;
}

}  // namespace

std::vector<std::string_view> network_profiles() {
  std::vector<std::string_view> ids;
  for (const Network& network : kNetworks) ids.push_back(network.id);
  return ids;
}

Profile network_numbers(std::string_view profile_id, const std::filesystem::path& root,
                        std::string& report) {
  const auto network = std::ranges::find(kNetworks, profile_id, &Network::id);
  SCAPESIM_CHECK(network != std::end(kNetworks), "no network of profile {}", profile_id);
  const std::vector<Sweep> sweeps = collective_sweeps(root);
  Profile profile = start_of(*network);
  std::vector<std::string> gaps;
  for (const Use& use : network->uses) {
    const auto [sweep, calls_of_use] = tables_of(sweeps, use);
    std::vector<TimedCall> calls = calls_of_use;
    if (use.algorithm)
      for (TimedCall& call : calls) call.algorithm = use.algorithm;
    std::erase_if(calls, [&](const TimedCall& call) { return call.size < use.from; });
    report += fmt::format("{}, from {}:\n", profile_id, use.sweep);
    const std::string source = fmt::format("{}{} on {}, {} (calib/data/collectives-sweeps.csv)",
                                           use.kind == kOther ? "of another machine: " : "",
                                           text_of(use), sweep->gpu, sweep->fabric);
    fit_modes(profile, calls, {use.kind, source}, report, gaps);
  }
  widen(profile);
  if (const double cap = network->transport_cap; cap > 0)
    profile.numbers["network.transport_cap_Bps"] = {
        cap, 0.8 * cap, 1.3 * cap, Factor::network, {Provenance::published, network->cap_source}};
  return profile;
}

}  // namespace scapesim::calib
