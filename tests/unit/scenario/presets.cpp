// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <map>

#include "support.hpp"

namespace scapesim::scenario {
namespace {

spec::Model model_of(const std::string& preset) {
  return load_text(kSound, {"model.preset=" + preset, "training.global_batch=512"}).front().model;
}

// Parameters of a decoder-only transformer, written out once more here: attention, MLP (with a gate
// for swiglu), norms, biases, embeddings.
std::int64_t parameters_by_hand(const spec::Model& m) {
  const bool gated = m.activation == spec::Activation::swiglu;
  const std::int64_t h = m.hidden;
  const std::int64_t query = std::int64_t{m.heads} * m.head_dim;
  const std::int64_t key_value = 2 * std::int64_t{m.kv_heads} * m.head_dim;
  const std::int64_t inner = gated ? 2 * std::int64_t{m.ffn} : m.ffn;
  const std::int64_t norm = m.norm == spec::Norm::layernorm ? 2 * h : h;
  const std::int64_t weights = h * (query + key_value) + query * h + h * inner + m.ffn * h;
  const std::int64_t biases = m.biases ? query + key_value + h + inner + h : 0;
  const std::int64_t embeddings = (m.tied_embeddings ? 1 : 2) * std::int64_t{m.vocab} * h;
  return m.layers * (weights + biases + 2 * norm) + norm + embeddings + m.max_positions * h;
}

TEST_CASE("parameters of the model presets are exact to the element") {
  // The first three: arXiv 2607.01678; Llama 2: the published weights; GPT-3: Megatron-LM.
  const std::map<std::string, std::int64_t> published = {
      {"gpt-345m", 354'871'296},      {"llama-500m", 513'590'784},   {"llama-1.8b", 1'831'201'280},
      {"llama-7b", 6'738'415'616},    {"llama-13b", 13'015'864'320}, {"llama-70b", 68'976'648'192},
      {"gpt3-175b", 174'615'846'912},
  };
  for (const auto& [preset, parameters] : published) {
    INFO(preset);
    CHECK(parameters_by_hand(model_of(preset)) == parameters);
  }
  CHECK(model_presets().size() >= published.size());
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
      {"jupiter-booster", 6000, 4, 4, 25e9, 450e9, spec::FabricKind::dragonfly},
      {"dgx-a100", 140, 8, 8, 25e9, 300e9, spec::FabricKind::fat_tree},
      {"dgx-h100", 127, 8, 8, 50e9, 450e9, spec::FabricKind::fat_tree},
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
