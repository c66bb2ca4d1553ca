// SPDX-License-Identifier: Apache-2.0
#include "calib/shipped.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "calib/hopper.hpp"
#include "calib/rows.hpp"
#include "calib/shipped_gpus.hpp"
#include "calib/shipped_network.hpp"
#include "calib/sustained.hpp"
#include "sim/base/check.hpp"
#include "sim/scenario/load.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Profile;
using cost::Provenance;

namespace {

/// The shipped Vista scenario of the row's model, dense, at the row's GPU count.
spec::Scenario scenario_of(const VistaRow& row, const std::filesystem::path& root) {
  const std::string file =
      row.model == "llama-1.8B" ? "vista-llama-1.8b.toml" : "vista-llama-500m.toml";
  const std::string series = row.distributed_optimizer ? "AdamS + DO" : "AdamS";
  for (const spec::Scenario& scenario : scenario::load_scenarios(root / "scenarios" / file))
    if (scenario.series == series) return scenario::with_gpus(scenario, row.gpus, false);
  throw InternalError(fmt::format("{} has no series {}", file, series));
}

/// The same machine with RDMA: one NDR or 400G NIC per GPU, from public nccl-tests runs.
void use_ndr_network(Profile& profile) {
  profile.numbers.erase("network.transport_cap_Bps");
  profile.numbers.erase("network.smallest_fitted_B");
  profile.numbers["network.efficiency"] = {
      0.90,
      0.82,
      0.94,
      Factor::network,
      {Provenance::published,
       "one 400G NIC per GPU, nccl-tests plateaus: 41.3 GB/s (two H100 nodes), 45.9 and 46.4 GB/s "
       "(two nodes with ConnectX-8); not measured on Vista"}};
  const std::string latency =
      "two nodes with one GPU and one 400G RoCE NIC each: 32 us for a 2 to 4 KiB all-reduce, two "
      "ring steps (nccl-tests); not measured on Vista";
  profile.numbers["network.hop_latency_s"] = {
      16e-6, 6e-6, 35e-6, Factor::latency, {Provenance::published, latency}};
  profile.numbers["network.scalar_latency_s"] = {
      16e-6, 4e-6, 35e-6, Factor::latency, {Provenance::published, latency}};
}

/// A shipped profile of one part beside the Vista ones.
struct Machine {
  std::string_view id;
  std::string_view machine;
  std::string_view part;  ///< as data_sheet() has it
};

constexpr Machine kMachines[] = {
    {"gh200-jupiter", "JUPITER Booster, GH200 96GB, NDR 200 per GPU", "GH200-96GB"},
    {"gh200-alps", "CSCS Alps, GH200 96GB, Slingshot 200 per GPU", "GH200-96GB"},
    {"gh200-alps-tcp", "CSCS Alps, GH200 96GB, NCCL over TCP (no fabric plugin)", "GH200-96GB"},
    {"h100-sxm", "H100 SXM 80GB, eight per node, NDR 400 per GPU", "H100-SXM-80GB"},
    {"h100-sxm-efa", "AWS p5: H100 SXM 80GB, eight per node, EFA", "H100-SXM-80GB"},
    {"h100-sxm-tcpxo", "Google A3 Mega: H100 SXM 80GB, eight per node, GPUDirect-TCPXO",
     "H100-SXM-80GB"},
    {"h200-sxm", "H200 SXM 141GB, eight per node, NDR 400 per GPU", "H200-SXM-141GB"},
    {"a100-sxm-80gb", "A100 SXM 80GB, eight per node, HDR 200", "A100-SXM-80GB"},
    {"a100-sxm-80gb-opa", "Jean Zay: A100 SXM 80GB, eight per node, Omni-Path 100",
     "A100-SXM-80GB"},
    {"a100-vtrain", "vTrain's cluster: A100 SXM 80GB, eight per node, 4 x HDR 200",
     "A100-SXM-80GB"},
    {"a100-sxm-40gb", "A100 SXM 40GB, eight per node", "A100-SXM-40GB"},
    {"a100-pcie", "A100 PCIe 80GB, eight per node", "A100-PCIe-80GB"},
    {"b200-sxm", "B200 SXM, eight per node, 400G per GPU", "B200-SXM"},
    {"gb200", "GB200 NVL72", "GB200"},
};

/// The network of the profile's id, from published nccl-tests tables.
void add_network(Profile& profile, const std::filesystem::path& root, std::string& report) {
  const Profile network = network_numbers(profile.id, root, report);
  for (const auto& [key, number] : network.numbers) profile.numbers[key] = number;
  for (const auto& [key, curve] : network.curves) profile.curves[key] = curve;
}

/// What may be fitted to training steps.
const FreeNumber kFree[] = {
    {.key = "gemm.scale", .factor = Factor::gemm, .start = 1},
    {.key = "gpu.clock_scale", .factor = Factor::gemm, .start = 1},
    {.key = "hbm.scatter_add_per_s", .factor = Factor::hbm, .start = 1e11},
    {.key = "host.launch_s", .factor = Factor::host, .start = 1e-4},
    {.key = "host.step_s", .factor = Factor::host, .start = 5e-3},
    {.key = "network.transport_cap_Bps", .factor = Factor::network, .start = 12e9},
    {.key = "network.crossing_cap_Bps", .factor = Factor::network, .start = 5e9},
};

/// The steps that a number of the profile is fitted to.
std::vector<MeasuredStep> steps_for(const Profile& profile, const FreeNumber& number,
                                    const std::filesystem::path& root) {
  std::vector<MeasuredStep> steps;
  for (const SustainedRow& row : sustained_rows(root / "calib" / "data" / "sustained.csv")) {
    if (row.profile != profile.id || row.key != number.key) continue;
    const auto scenarios = scenario::load_scenarios(root / "scenarios" / (row.scenario + ".toml"));
    steps.push_back({.name = row.name, .scenario = scenarios.at(0), .step_time = row.step_time});
  }
  return steps;
}

std::string names_of_steps(const std::vector<MeasuredStep>& steps) {
  std::string names;
  for (const MeasuredStep& step : steps) names += (names.empty() ? "" : " and ") + step.name;
  return names;
}

/// [M175] Numbers of the profile from its named training steps, when it has any. Each number leans
/// on the others: a few rounds settle them.
void use_steps(Profile& profile, const std::filesystem::path& root, std::string& report) {
  constexpr int kRounds = 5;
  std::string fitted, last_report;
  for (int round = 0; round < kRounds; ++round) {
    fitted.clear();
    last_report.clear();
    for (const FreeNumber& number : kFree) {
      const std::vector<MeasuredStep> steps = steps_for(profile, number, root);
      if (steps.empty()) continue;
      fit_to_steps(profile, number, steps, {Provenance::published, "calib/data/sustained.csv"},
                   last_report);
      fitted += fmt::format("{}{} fitted to the training steps of rows {}",
                            fitted.empty() ? "" : ", ", number.key, names_of_steps(steps));
    }
  }
  if (fitted.empty()) return;
  report += last_report;
  profile.note = fmt::format(
      "GPU kernels and network from published benchmarks; {} (calib/data/sustained.csv), which are "
      "not scored.",
      fitted);
}

std::vector<Profile> machines(const std::filesystem::path& root, const Profile& hopper,
                              std::string& report) {
  const auto gpus = gpu_profiles(kernel_data(root / "calib" / "data"), hopper, report);
  std::vector<Profile> profiles;
  for (const Machine& machine : kMachines) {
    Profile profile = gpus.find(machine.part)->second;
    profile.id = machine.id;
    profile.machine = machine.machine;
    profile.note = "GPU kernels and network from published benchmarks; no training run was used.";
    add_network(profile, root, report);
    if (machine.id == std::string_view("gh200-jupiter"))  // its clock is fitted below
      profile.numbers["gemm.scale"] = gpus.at("H100-SXM-80GB").numbers.at("gemm.scale");
    use_steps(profile, root, report);
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

/// Data-sheet rates with the usual shares of them, and wide ranges: nothing of a machine measured.
Profile datasheet(const Profile& gpu) {
  Profile profile = gpu;
  profile.id = "gh200-datasheet";
  profile.machine = "GH200 96GB on any fabric";
  profile.note = "Data-sheet rates and assumed shares of them; use it when nothing was measured.";
  const auto put = [&](std::string_view key, double value, double low, double high, Factor factor,
                       std::string source) {
    profile.numbers[std::string(key)] = {
        value, low, high, factor, {Provenance::datasheet, std::move(source)}};
  };
  put("gemm.scale", 0.9, 0.75, 1.02, Factor::gemm,
      "sustained clocks under load, 75 to 102 % of short benchmarks");
  put("hbm.bandwidth_Bps", 3.2e12, 2.8e12, 3.6e12, Factor::hbm, "80 % of the data sheet's 4 TB/s");
  put("copy.h2d_Bps", 360e9, 270e9, 450e9, Factor::copy, "80 % of NVLink-C2C's 450 GB/s");
  put("copy.d2h_Bps", 315e9, 225e9, 450e9, Factor::copy, "70 % of NVLink-C2C's 450 GB/s");
  put("network.efficiency", 0.9, 0.75, 0.97, Factor::network, "90 % of the NIC's line rate");
  put("model.discrepancy", 1, 0.85, 1.15, Factor::model, "uncalibrated machine");
  return profile;
}

}  // namespace

std::vector<TrainingRun> vista_dense_runs(const std::filesystem::path& root) {
  std::vector<VistaRow> rows = vista_rows(root / "calib" / "data" / "vista_scape.csv");
  // Nothing about SCAPE may reach a profile.
  std::erase_if(rows, [](const VistaRow& row) { return row.strategy != "dense"; });
  std::vector<TrainingRun> runs;
  for (const VistaRow& row : rows) {
    if (row.metric != "computation_s") continue;
    const auto same_run = [&](const VistaRow& other) {
      return other.metric == "communication_s" && other.model == row.model &&
             other.gpus == row.gpus && other.distributed_optimizer == row.distributed_optimizer;
    };
    const auto communication = std::find_if(rows.begin(), rows.end(), same_run);
    if (communication != rows.end())
      runs.push_back({.scenario = scenario_of(row, root),
                      .computation = Seconds(row.value),
                      .communication = Seconds(communication->value)});
  }
  return runs;
}

ShippedProfiles build_shipped_profiles(const std::filesystem::path& root) {
  const std::filesystem::path data = root / "calib" / "data";
  ShippedProfiles shipped;
  Profile gpu;
  add_attention(gpu, attention_rows(data / "attention_hopper.csv"), shipped.report);
  add_memory_and_host(gpu);
  add_gemm(gpu, gemm_rows(data / "gemm_hopper.csv"), shipped.report);

  const std::vector<TrainingRun> runs = vista_dense_runs(root);
  Profile sockets = gpu;
  sockets.id = "gh200-vista-sockets";
  sockets.machine = "TACC Vista, GH200 96GB, NCCL over TCP sockets";
  sockets.note =
      "GPU kernels from published Hopper rows; one GEMM scale, host term, bandwidth and "
      "latency fitted to dense training runs only. No SCAPE run was used.";
  const cost::Origin source = {
      Provenance::published,
      "dense runs of two models on TACC Vista, NCCL over TCP sockets (calib/data/vista_scape.csv)"};
  fit_transport(sockets, runs, source, shipped.report);
  fit_computation(sockets, runs, source, shipped.report);
  sockets.numbers["network.scalar_latency_s"] = {25e-6,
                                                 8e-6,
                                                 200e-6,
                                                 Factor::latency,
                                                 {Provenance::published,
                                                  "all-reduce of 8 to 256 B over TCP sockets on "
                                                  "two Alps nodes takes 50 us (nccl-tests, fabric "
                                                  "plugin off): two inter-node latencies"}};

  Profile ndr = sockets;
  ndr.id = "gh200-vista-ndr";
  ndr.machine = "TACC Vista, GH200 96GB, NCCL over NDR InfiniBand";
  ndr.note =
      "GPU as in gh200-vista-sockets; the network from public runs of other machines with one "
      "400G NIC per GPU.";
  use_ndr_network(ndr);

  shipped.profiles = {std::move(sockets), std::move(ndr), datasheet(gpu)};
  std::vector<Profile> others = machines(root, gpu, shipped.report);
  std::move(others.begin(), others.end(), std::back_inserter(shipped.profiles));
  return shipped;
}

}  // namespace scapesim::calib
