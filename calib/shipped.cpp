// SPDX-License-Identifier: Apache-2.0
#include "calib/shipped.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "calib/hopper.hpp"
#include "calib/rows.hpp"
#include "sim/base/check.hpp"
#include "sim/plan/plan.hpp"
#include "sim/scenario/load.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Number;
using cost::Profile;
using cost::Provenance;
using Eigen::VectorXd;

namespace {

constexpr double kRange90 = 1.645;

/// A measured row and the scenario it was.
struct Run {
  spec::Scenario scenario;
  workload::Workload workload;
  topology::Fabric fabric;
};

/// The shipped Vista scenario of the row's model, dense, at the row's GPU count.
Run run_of(const DenseRow& row, const std::filesystem::path& root) {
  const std::string file =
      row.model == "llama-1.8B" ? "vista-llama-1.8b.toml" : "vista-llama-500m.toml";
  const std::string series = row.distributed_optimizer ? "AdamS + DO" : "AdamS";
  for (const spec::Scenario& scenario : scenario::load_scenarios(root / "scenarios" / file)) {
    if (scenario.series != series) continue;
    spec::Scenario at = scenario::with_gpus(scenario, row.gpus, false);
    workload::Workload workload = workload::workload_of(at.model, at.training);
    topology::Fabric fabric = topology::build_fabric(at.cluster, row.gpus);
    return {std::move(at), std::move(workload), std::move(fabric)};
  }
  throw InternalError(fmt::format("{} has no series {}", file, series));
}

/// Step minus communication: these runs overlap nothing, so local operations simply add up.
Seconds computation(const Run& run, const Profile& profile) {
  const graph::StepGraph graph = plan::step_graph(run.scenario, run.workload, profile, run.fabric);
  Seconds sum;
  for (const graph::Operation& operation : graph.classes[0].operations)
    if (operation.work == graph::Work::local) sum += operation.duration;
  return sum;
}

Number number(double value, double error, Factor factor, Provenance kind, std::string source) {
  const double ratio = std::exp(kRange90 * error / value);
  return {value, value / ratio, value * ratio, factor, {kind, std::move(source)}};
}

/// [M82] Transport of the dense runs: nccl volume and ring steps of each row against its time.
void add_vista_network(Profile& profile, const std::vector<DenseRow>& rows,
                       const std::filesystem::path& root, std::string& report) {
  std::vector<RingRow> ring;
  double smallest = std::numeric_limits<double>::infinity();
  for (const DenseRow& row : rows) {
    if (row.metric != "communication_s") continue;
    const auto parameters = static_cast<double>(run_of(row, root).workload.parameters);
    smallest = std::min(smallest, (row.distributed_optimizer ? 2 : 4) * parameters);
    const double share = static_cast<double>(row.gpus - 1) / row.gpus;
    // [M32] all-reduce of fp32 gradients; or reduce-scatter in fp32 and all-gather in bf16.
    const double per_parameter = row.distributed_optimizer ? 4 + 2 : 2 * 4;
    ring.push_back({Bytes(per_parameter * parameters * share), 2 * (row.gpus - 1), row.time});
  }
  const Fit fit = fit_ring(ring);
  const double bandwidth = 1 / fit.value[0];
  const std::string source = fmt::format(
      "fit t = volume/B + steps alpha to {} dense rows of TACC Vista, NCCL over TCP sockets "
      "(calib/data/vista_scape.csv), rms {:.2f} %, worst {:.2f} %",
      fit.rows, 100 * fit.rms, 100 * fit.worst);
  profile.numbers["network.efficiency"] = {
      1, 1, 1, Factor::network, {Provenance::published, "the transport cap decides"}};
  profile.numbers["network.transport_cap_Bps"] =
      number(bandwidth, bandwidth * fit.standard_error[0] / fit.value[0], Factor::network,
             Provenance::published, source);
  profile.numbers["network.hop_latency_s"] =
      number(fit.value[1], fit.standard_error[1], Factor::latency, Provenance::published, source);
  profile.numbers["network.smallest_fitted_B"] = {
      smallest, smallest, smallest, Factor::latency, {Provenance::published, source}};
  profile.numbers["network.scalar_latency_s"] = {25e-6,
                                                 8e-6,
                                                 200e-6,
                                                 Factor::latency,
                                                 {Provenance::published,
                                                  "all-reduce of 8 to 256 B over TCP sockets on "
                                                  "two Alps nodes takes 50 us (nccl-tests, fabric "
                                                  "plugin off): two inter-node latencies"}};
  report += fmt::format(
      "vista network: {} rows, rms {:.2f} %, worst {:.2f} %: B {:.3f} GB/s, "
      "alpha {:.3f} ms per hop\n",
      fit.rows, 100 * fit.rms, 100 * fit.worst, bandwidth / 1e9, 1e3 * fit.value[1]);
}

/// [M85] One scale on all GEMM rates and one host term per step, for both models.
void add_vista_computation(Profile& profile, const std::vector<DenseRow>& rows,
                           const std::filesystem::path& root, std::string& report) {
  std::vector<Run> runs;
  std::vector<double> times;
  for (const DenseRow& row : rows) {
    if (row.metric != "computation_s") continue;
    runs.push_back(run_of(row, root));
    times.push_back(row.time.si());
  }
  const Model model = [&](const VectorXd& at) {
    Profile candidate = profile;
    candidate.numbers["gemm.scale"].value = at[0];
    candidate.numbers["host.step_s"].value = at[1];
    VectorXd predicted(static_cast<Eigen::Index>(runs.size()));
    for (std::size_t i = 0; i < runs.size(); ++i)
      predicted[static_cast<Eigen::Index>(i)] = computation(runs[i], candidate).si();
    return predicted;
  };
  const VectorXd measured =
      Eigen::Map<const VectorXd>(times.data(), static_cast<Eigen::Index>(times.size()));
  const Fit fit = fit_positive(model, measured, VectorXd{{0.9, 0.02}});
  const std::string source = fmt::format(
      "fit of one GEMM scale and one host term to {} dense computation rows of two models on TACC "
      "Vista (calib/data/vista_scape.csv), rms {:.2f} %, worst {:.2f} %",
      fit.rows, 100 * fit.rms, 100 * fit.worst);
  profile.numbers["gemm.scale"] =
      number(fit.value[0], fit.standard_error[0], Factor::gemm, Provenance::published, source);
  profile.numbers["host.step_s"] =
      number(fit.value[1], fit.standard_error[1], Factor::host, Provenance::published, source);
  const double spread = std::exp(kRange90 * fit.rms);
  profile.numbers["model.discrepancy"] = {
      1,
      1 / spread,
      spread,
      Factor::model,
      {Provenance::published, "rms residual of the computation fit: " + source}};
  report += fmt::format(
      "vista computation: {} rows, rms {:.2f} %, worst {:.2f} %: scale {:.4f}, "
      "host {:.1f} ms per step\n",
      fit.rows, 100 * fit.rms, 100 * fit.worst, fit.value[0], 1e3 * fit.value[1]);
  const VectorXd predicted = model(fit.value);
  std::size_t i = 0;
  for (const DenseRow& row : rows) {
    if (row.metric != "computation_s") continue;
    const double error = predicted[static_cast<Eigen::Index>(i++)] / row.time.si() - 1;
    report += fmt::format("  {} {} {:2d} GPUs: {:+.2f} %\n", row.model,
                          row.distributed_optimizer ? "DO" : "  ", row.gpus, 100 * error);
  }
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

ShippedProfiles build_shipped_profiles(const std::filesystem::path& root) {
  const std::filesystem::path data = root / "calib" / "data";
  ShippedProfiles shipped;
  Profile gpu;
  add_attention(gpu, attention_rows(data / "attention_hopper.csv"), shipped.report);
  add_memory_and_host(gpu);
  add_gemm(gpu, gemm_rows(data / "gemm_hopper.csv"), shipped.report);

  const std::vector<DenseRow> rows = dense_rows(data / "vista_scape.csv");
  Profile sockets = gpu;
  sockets.id = "gh200-vista-sockets";
  sockets.machine = "TACC Vista, GH200 96GB, NCCL over TCP sockets";
  sockets.note =
      "GPU kernels from published Hopper rows; one GEMM scale, host term, bandwidth and "
      "latency fitted to dense training runs only. No SCAPE run was used.";
  add_vista_network(sockets, rows, root, shipped.report);
  add_vista_computation(sockets, rows, root, shipped.report);

  Profile ndr = sockets;
  ndr.id = "gh200-vista-ndr";
  ndr.machine = "TACC Vista, GH200 96GB, NCCL over NDR InfiniBand";
  ndr.note =
      "GPU as in gh200-vista-sockets; the network from public runs of other machines with one "
      "400G NIC per GPU.";
  use_ndr_network(ndr);

  shipped.profiles = {std::move(sockets), std::move(ndr), datasheet(gpu)};
  return shipped;
}

}  // namespace scapesim::calib
