// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "sim/workload/workload.hpp"
#include "support.hpp"

namespace scapesim::scenario {
namespace {

spec::Model model_of(const std::string& preset) {
  return load_text(kSound, {"model.preset=" + preset, "training.global_batch=512"}).front().model;
}

workload::Workload work_of(const std::string& preset) {
  const spec::Scenario scenario =
      load_text(kSound, {"model.preset=" + preset, "training.global_batch=512"}).front();
  return workload::workload_of(scenario.model, scenario.training);
}

// The first rows are of arXiv 2607.01678 (gpt-345m, llama-500m, llama-1.8b) and Megatron-LM
// (gpt3-175b); the others are the parameters of the checkpoints on Hugging Face, tied matrices once
// and BERT with both heads of pre-training.
const std::map<std::string, std::int64_t>& published() {
  static const std::map<std::string, std::int64_t> rows = {
      {"bert-base", 110'106'428},
      {"bert-large", 336'226'108},
      {"bloom-176b", 176'247'271'424},
      {"bloom-7b1", 7'069'016'064},
      {"gemma-2b", 2'506'172'416},
      {"gemma-7b", 8'537'680'896},
      {"gemma2-27b", 27'227'128'320},
      {"gemma2-2b", 2'614'341'888},
      {"gemma2-9b", 9'241'705'984},
      {"gpt-345m", 354'871'296},
      {"gpt2", 124'439'808},
      {"gpt2-large", 774'030'080},
      {"gpt2-medium", 354'823'168},
      {"gpt2-xl", 1'557'611'200},
      {"gpt3-175b", 174'615'846'912},
      {"llama-1.8b", 1'831'201'280},
      {"llama-13b", 13'015'864'320},
      {"llama-500m", 513'590'784},
      {"llama-70b", 68'976'648'192},
      {"llama-7b", 6'738'415'616},
      {"llama1-13b", 13'015'864'320},
      {"llama1-33b", 32'528'943'616},
      {"llama1-65b", 65'285'660'672},
      {"llama1-7b", 6'738'415'616},
      {"llama3-405b", 405'853'388'800},
      {"llama3-70b", 70'553'706'496},
      {"llama3-8b", 8'030'261'248},
      {"llama3.2-1b", 1'235'814'400},
      {"llama3.2-3b", 3'212'749'824},
      {"mistral-7b", 7'241'732'096},
      {"mixtral-8x22b", 140'620'634'112},
      {"mixtral-8x7b", 46'702'792'704},
      {"mpt-7b", 6'649'286'656},
      {"olmo-1b", 1'176'764'416},
      {"olmo-7b", 6'888'095'744},
      {"qwen2.5-0.5b", 494'032'768},
      {"qwen2.5-1.5b", 1'543'714'304},
      {"qwen2.5-14b", 14'770'033'664},
      {"qwen2.5-32b", 32'763'876'352},
      {"qwen2.5-3b", 3'085'938'688},
      {"qwen2.5-72b", 72'706'203'648},
      {"qwen2.5-7b", 7'615'616'512},
      {"qwen3-0.6b", 596'049'920},
      {"qwen3-1.7b", 1'720'574'976},
      {"qwen3-14b", 14'768'307'200},
      {"qwen3-235b-a22b", 235'093'634'560},
      {"qwen3-30b-a3b", 30'532'122'624},
      {"qwen3-32b", 32'762'123'264},
      {"qwen3-4b", 4'022'468'096},
      {"qwen3-8b", 8'190'735'360},
  };
  return rows;
}

TEST_CASE("[M1] parameters of the model presets are the published ones to the element") {
  for (const auto& [preset, parameters] : published()) {
    INFO(preset);
    CHECK(work_of(preset).parameters == parameters);
  }
  CHECK(published().size() >= 40);
}

TEST_CASE("[M1] DeepSeek-V3 has 671 B parameters, 37 B active, and a prediction module") {
  // DeepSeek-AI 2024, abstract; the checkpoint's main model to the element.
  const workload::Workload main = [] {
    spec::Scenario scenario =
        load_text(kSound, {"model.preset=deepseek-v3", "training.global_batch=512"}).front();
    scenario.model.mtp_layers = 0;
    return workload::workload_of(scenario.model, scenario.training);
  }();
  CHECK(main.parameters == 671'026'419'200);
  // The report counts one of the two embedding matrices as active: 37 B.
  CHECK(main.active_parameters - std::int64_t{129'280} * 7168 == 36'625'618'432);
  CHECK(work_of("deepseek-v3").parameters - main.parameters == 11'610'068'224);
}

TEST_CASE("[M1] parameters that are published in rounded figures agree with these") {
  struct Row {
    std::string preset;
    double total, active, rounding;
  };
  // Jiang et al. 2024: 47 B, 13 B; Mistral AI: 141 B, 39 B; Qwen Team 2025: 3.3 B and 22 B active;
  // NVIDIA 2024: 9.4 B embedding and 331.6 B other parameters; Parmar et al. 2024: 3.2 B and 12.5
  // B; Brown et al. 2020: 125 M ... 13 B, with a vocabulary of 50,257.
  const std::vector<Row> rows = {
      {"mixtral-8x7b", 47e9, 13e9, 0.5e9},
      {"mixtral-8x22b", 141e9, 39e9, 0.5e9},
      {"qwen3-30b-a3b", 30.5e9, 3.35e9, 0.05e9},
      {"qwen3-235b-a22b", 235e9, 22e9, 0.5e9},
      {"nemotron4-340b", 341e9, 341e9, 0.1e9},
      {"nemotron4-15b", 15.7e9, 15.7e9, 0.1e9},
      {"gpt3-125m", 125e6, 125e6, 1e6},
      {"gpt3-2.7b", 2.7e9, 2.7e9, 0.05e9},
      {"gpt3-6.7b", 6.7e9, 6.7e9, 0.05e9},
      {"gpt3-13b", 13e9, 13e9, 0.5e9},
      {"mpt-30b", 30e9, 30e9, 0.5e9},
      {"gpt3-1.3b", 1.3e9, 1.3e9, 0.05e9},
  };
  for (const Row& row : rows) {
    INFO(row.preset);
    const workload::Workload work = work_of(row.preset);
    CHECK(std::abs(static_cast<double>(work.parameters) - row.total) <= row.rounding);
    CHECK(std::abs(static_cast<double>(work.active_parameters) - row.active) <= row.rounding);
  }
}

TEST_CASE("every shipped preset and scenario loads and says what it is") {
  for (const Preset& preset : model_presets()) {
    INFO(preset.name);
    CHECK_FALSE(preset.help.empty());
    CHECK(model_of(preset.name).layers > 0);
  }
  for (const Preset& preset : cluster_presets()) {
    INFO(preset.name);
    CHECK_FALSE(preset.help.empty());
    CHECK(load_cluster(preset.name).nodes > 0);
  }
  REQUIRE(shipped_scenarios().size() >= 6);
  for (const Preset& preset : shipped_scenarios()) {
    INFO(preset.name);
    CHECK_FALSE(preset.help.empty());
    const auto series = load_scenarios(data_folder() / "scenarios" / (preset.name + ".toml"));
    CHECK(series.front().name == preset.name);
  }
}

TEST_CASE("Vista is what TACC and NVIDIA say") {
  const spec::Cluster vista = load_cluster("vista");
  CHECK(vista.nodes == 600);
  CHECK(vista.gpus_per_node == 1);
  CHECK(vista.fabric.kind == spec::FabricKind::fat_tree);
  CHECK(vista.fabric.nodes_per_rack == 32);
  CHECK(vista.fabric.taper == 1);
  CHECK(vista.gpu.memory.si() == 103'079'215'104.0);  // 96 GiB
  CHECK(vista.gpu.peak_bf16.si() == 989.4e12);
  CHECK(vista.gpu.hbm_bandwidth.si() == 4e12);
  CHECK(vista.host_link.kind == spec::HostLinkKind::c2c);
  CHECK(vista.host_link.bandwidth.si() == 450e9);
}

TEST_CASE("clusters have the nodes, GPUs and adapters that their owners state") {
  struct Row {
    std::string preset;
    int nodes, gpus_per_node, nics_per_node;
    double nic_Bps, node_link_Bps;
    spec::FabricKind fabric;
  };
  const std::vector<Row> rows = {
      {"alps", 2688, 4, 4, 25e9, 450e9, spec::FabricKind::dragonfly},
      {"jupiter-booster", 6000, 4, 4, 25e9, 450e9, spec::FabricKind::dragonfly_plus},
      {"dgx-a100", 140, 8, 8, 25e9, 300e9, spec::FabricKind::fat_tree},
      {"dgx-h100", 127, 8, 8, 50e9, 450e9, spec::FabricKind::fat_tree},
      {"gb200-nvl72", 144, 4, 4, 50e9, 900e9, spec::FabricKind::rail_optimized},
      {"vtrain-a100", 64, 8, 4, 25e9, 300e9, spec::FabricKind::switch_},
  };
  for (const Row& row : rows) {
    INFO(row.preset);
    const spec::Cluster cluster = load_cluster(row.preset);
    CHECK(cluster.nodes == row.nodes);
    CHECK(cluster.gpus_per_node == row.gpus_per_node);
    CHECK(cluster.nics_per_node == row.nics_per_node);
    CHECK(cluster.nic_bandwidth.si() == row.nic_Bps);
    CHECK(cluster.node_link_bandwidth.si() == row.node_link_Bps);
    CHECK(cluster.fabric.kind == row.fabric);
  }
}

TEST_CASE("the fifth series over NDR is SCAPE with fused kernels and an overlapped mask") {
  const auto series = load_scenarios("scenarios/vista-llama-1.8b-ndr.toml");
  REQUIRE(series.size() == 5);
  CHECK(series[4].series == "SCAPE d=0.01 fused, overlapped");
  CHECK(series[4].strategy.kernels == spec::Kernels::fused);
  CHECK(series[4].strategy.mask_wait == spec::MaskWait::overlapped);
  CHECK(series[3].strategy.kernels == spec::Kernels::unfused);
}

}  // namespace
}  // namespace scapesim::scenario
