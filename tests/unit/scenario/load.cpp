// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/load.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "sim/scenario/one_series.hpp"
#include "sim/scenario/template.hpp"
#include "support.hpp"

namespace scapesim::scenario {
namespace {

using namespace literals;

const std::string kVista = "scenarios/vista-llama-1.8b.toml";

TEST_CASE("the main scenario is four series of one job") {
  const std::vector<spec::Scenario> series = load_scenarios(kVista);
  REQUIRE(series.size() == 4);
  CHECK(series[0].series == "AdamS");
  CHECK(series[1].series == "AdamS + DO");
  CHECK(series[2].series == "SCAPE d=0.1");
  CHECK(series[3].series == "SCAPE d=0.01");
  for (const spec::Scenario& scenario : series) {
    CHECK(scenario.name == "vista-llama-1.8b");
    CHECK(scenario.model.hidden == 2560);
    CHECK(scenario.model.kv_heads == 8);
    CHECK(scenario.training.global_batch == 1024);
    CHECK(scenario.training.optimizer == spec::Optimizer::adams);
    CHECK(scenario.strategy.kernels == spec::Kernels::unfused);
    CHECK(scenario.strategy.mask_wait == spec::MaskWait::blocking);
    CHECK(scenario.strategy.owners == spec::Owners::tensor);
    CHECK(scenario.cluster.gpus == 64);
    CHECK(scenario.cluster.nic_bandwidth == 400_Gbps);
    CHECK(scenario.calibration.profile == "gh200-vista-sockets");
    CHECK(spec::violations(scenario).empty());
  }
  CHECK(series[1].strategy.sharding == spec::Sharding::zero1);
  CHECK(series[2].strategy.density == 0.1);
  CHECK(series[2].strategy.offload.residual);
  CHECK(series[3].strategy.density == 0.01);
  CHECK_FALSE(series[3].strategy.offload.residual);
}

TEST_CASE("a scenario without variants is one series without a name, named by its file") {
  const std::vector<spec::Scenario> series = load_text(kSound);
  REQUIRE(series.size() == 1);
  CHECK(series[0].series.empty());
  CHECK(series[0].name == "scenario");
  CHECK(series[0].model.name == "llama-1.8b");
  CHECK(series[0].cluster.name == "vista");
}

TEST_CASE("the sequence is the model's where the scenario says none") {
  CHECK(load_text(kSound).front().training.sequence == 2048);
  CHECK(load_text(kSound, {"model.preset=llama-7b"}).front().training.sequence == 4096);
  CHECK(load_text(kSound, {"training.sequence=512"}).front().training.sequence == 512);
}

TEST_CASE("--set takes TOML values and bare words, the last one wins") {
  const spec::Scenario scenario =
      load_text(kSound,
                {"strategy.density=0.5", "cluster.nic_bandwidth=800Gbps",
                 "strategy.sharding = \"zero1\"", R"(strategy.offload=["residual", "replica"])",
                 "strategy.kernels=unfused", "strategy.density=0.1", "name=other"})
          .front();
  CHECK(scenario.strategy.density == 0.1);
  CHECK(scenario.cluster.nic_bandwidth == 100_GBps);
  CHECK(scenario.strategy.sharding == spec::Sharding::zero1);
  CHECK(scenario.strategy.offload.residual);
  CHECK(scenario.strategy.offload.replica);
  CHECK(scenario.strategy.kernels == spec::Kernels::unfused);
  CHECK(scenario.name == "other");
}

TEST_CASE("a --set of the wrong type says what it got") {
  const auto what = [](const char* set) {
    const std::vector<Problem> problems = problems_of([&] { load_text(kSound, {set}); });
    return problems.size() == 1 ? problems[0].what : std::to_string(problems.size());
  };
  CHECK(what("training.global_batch=99999999999999999999999") ==
        "an integer is needed, not too large an integer "
        "[training.global_batch=99999999999999999999999]");
  CHECK(what("model.layers=[1]") ==
        "an integer is needed, not a list of numbers [model.layers=[1]]");
}

TEST_CASE("each key that a cluster without a preset misses is named") {
  std::string text = kSound;
  text.replace(text.find("preset = \"vista\""), 16,
               "nodes = 600\nnic_bandwidth = \"400Gbps\"\ngpu_peak_bf16 = \"989TFLOP/s\"\n"
               "hbm_bandwidth = \"4TB/s\"\ngpu_memory = \"96GiB\"\nmultiprocessors = 132");
  const std::vector<Problem> problems = problems_of([&] { load_text(text); });
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].key == "cluster.latency");
  CHECK(problems[0].what == "missing");
  CHECK_THAT(problems[0].hint, Catch::Contains("cluster.preset = \"vista\" brings it"));
}

TEST_CASE("--set comes after the variant, the variant after the file") {
  const std::string text = kSound + R"(
[[variant]]
name = "unfused"
set = { strategy = { kernels = "unfused", density = 0.1 } }
[[variant]]
name = "small"
set = { "training.micro_batch" = 4, "model.preset" = "llama-500m" }
)";
  const std::vector<spec::Scenario> series = load_text(text, {"strategy.density=0.2"});
  REQUIRE(series.size() == 2);
  CHECK(series[0].strategy.kernels == spec::Kernels::unfused);
  CHECK(series[0].strategy.density == 0.2);
  CHECK(series[0].training.micro_batch == 8);
  CHECK(series[1].strategy.kernels == spec::Kernels::fused);
  CHECK(series[1].strategy.density == 0.2);
  CHECK(series[1].training.micro_batch == 4);
  CHECK(series[1].model.hidden == 1536);
  CHECK(series[1].training.sequence == 4096);
}

TEST_CASE("a --set among several series speaks to those that can use it") {
  const auto sparse = load_scenarios(kVista, Set{"strategy.density=0.05"});
  CHECK(sparse[0].strategy.density == 1);
  CHECK(sparse[3].strategy.density == 0.05);
  const auto overlapped = load_scenarios(kVista, Set{"training.overlap_gradients=true"});
  CHECK(overlapped[0].training.overlap_gradients);
  CHECK(overlapped[3].training.overlap_gradients);
  const auto ranks =
      load_scenarios("scenarios/methods-comparison.toml", Set{"strategy.low_rank=8"});
  for (const spec::Scenario& s : ranks)
    CHECK(s.strategy.low_rank == (s.strategy.method == spec::Method::powersgd ? 8 : 4));
}

TEST_CASE("a --set among several series speaks to a method that a point of a study chooses") {
  ScenarioTemplate study("scenarios/methods-comparison.toml", Set{"strategy.low_rank=8"});
  Problems problems;
  const auto method = parse_set("strategy.method=powersgd", 1, problems);
  CHECK(study.draft(0, {}).scenario.strategy.low_rank == 4);
  CHECK(study.draft(0, {&*method, 1}).scenario.strategy.low_rank == 8);
}

TEST_CASE("a --set that no series reads is refused") {
  const auto nowhere = problems_of([] { load_scenarios(kVista, Set{"strategy.low_rank=8"}); });
  REQUIRE(nowhere.size() == 1);
  CHECK(nowhere[0].key == "strategy.low_rank");
  CHECK(nowhere[0].place.file == "--set");
  CHECK(nowhere[0].what == "no series reads it: it is read by powersgd [strategy.low_rank=8]");
}

TEST_CASE("one series is loaded whatever an override makes of the others") {
  const Set sync{"training.gradient_sync=micro_batch"};  // SCAPE and the sharded series refuse it
  CHECK(problems_of([&] { load_scenarios(kVista, sync); }).size() == 2);
  const auto alone = load_series(kVista, sync, GpuCount::of_file, "AdamS");
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].series == "AdamS");
  CHECK(alone[0].training.gradient_sync == spec::GradientSync::micro_batch);
  CHECK(problems_of([&] { load_series(kVista, sync, GpuCount::of_file, "AdamS + DO"); }).size() ==
        1);
  // Series of a scenario with several stay what they are among the others.
  const auto dense = load_series(kVista, Set{"strategy.density=0.05"}, GpuCount::of_file, "AdamS");
  CHECK(dense.at(0).strategy.density == 1);
  CHECK(load_series(kVista, {}, GpuCount::of_file, "no such series").size() == 4);
}

const std::string kInline = R"(
[model]
layers = 2
hidden = 96
heads = 6
kv_heads = 2
head_dim = 12
ffn = 384
vocab = 1000
[training]
global_batch = 64
micro_batch = 1
sequence = 256
[cluster]
preset = "vista"
gpus = 4
nic_bandwidth = "100Gbps"
gpu_price = "2USD/h"
[calibration]
profile = "gh200-datasheet"
)";

TEST_CASE("prices, power, carbon, failures and storage are optional values of the cluster") {
  const spec::Scenario plain = load_text(kInline).front();
  CHECK_FALSE(plain.cluster.carbon_intensity);
  CHECK_FALSE(plain.cluster.node_mtbf);
  const spec::Cluster told =
      load_text(kInline, {"cluster.carbon_intensity=385g/kWh", "cluster.pue=1.25",
                          "cluster.node_power=10.2kW", "cluster.node_mtbf=264d",
                          "cluster.restart_time=10min", "cluster.storage_bandwidth=2TB/s"})
          .front()
          .cluster;
  CHECK(told.carbon_intensity->si() == Approx(0.385 / 3.6e6).epsilon(1e-14));
  CHECK(told.power_usage_effectiveness == 1.25);
  CHECK(told.node_power == Watts(10'200));
  CHECK(told.node_mtbf == Seconds(264 * 86'400.0));
  CHECK(told.restart_time == Seconds(600));
  CHECK(told.storage_bandwidth == 2_TBps);
  CHECK_FALSE(load_text(kInline, {"cluster.gpu_price=none"}).front().cluster.gpu_price);
  for (const char* wrong : {"cluster.carbon_intensity=385", "cluster.carbon_intensity=385kg/kWh",
                            "cluster.pue=0.5", "cluster.node_mtbf=1s", "cluster.gpu_price=-1USD/h"})
    CHECK_THROWS_AS(load_text(kInline, {wrong}), InputError);
}

TEST_CASE("a preset of --set replaces what the file says of the same thing") {
  const spec::Scenario inline_model = load_text(kInline).front();
  CHECK(inline_model.model.head_dim == 12);
  CHECK(inline_model.cluster.nic_bandwidth == 100_Gbps);
  const spec::Scenario llama = load_text(kInline, {"model.preset=llama-7b"}).front();
  CHECK(llama.model.name == "llama-7b");
  CHECK(llama.model.layers == 32);
  CHECK(llama.model.kv_heads == 32);
  CHECK(llama.model.head_dim == 128);  // follows from the preset's hidden and heads
  CHECK(llama.training.sequence == 4096);
  CHECK(llama.training.global_batch == 64);
  CHECK(llama.hash != inline_model.hash);
  const spec::Scenario flat = load_text(kInline, {"cluster.preset=flat-50GBps"}).front();
  CHECK(flat.cluster.nic_bandwidth == 50_GBps);
  CHECK(flat.cluster.gpus == 4);
  CHECK(flat.cluster.gpu_price.has_value());
}

TEST_CASE("keys of the layer that chose a preset, and of later ones, win over it") {
  const spec::Scenario set =
      load_text(kInline, {"model.layers=3", "model.preset=llama-7b", "training.sequence=512"})
          .front();
  CHECK(set.model.layers == 3);
  CHECK(set.model.hidden == 4096);
  CHECK(set.training.sequence == 512);
  const std::string variants = kInline + R"(
[[variant]]
name = "llama"
set = { "model.preset" = "llama-7b", "training.sequence" = 1024 }
[[variant]]
name = "own"
set = { "model.layers" = 5 }
)";
  const std::vector<spec::Scenario> series = load_text(variants, {"model.ffn=9000"});
  CHECK(series[0].model.hidden == 4096);
  CHECK(series[0].model.ffn == 9000);
  CHECK(series[0].training.sequence == 1024);
  CHECK(series[1].model.layers == 5);
  CHECK(series[1].model.hidden == 96);
  for (const spec::Scenario& scenario : load_text(variants, {"model.preset=gpt-345m"})) {
    CHECK(scenario.model.layers == 24);  // --set lies over the variants
    CHECK(scenario.model.kv_heads == 16);
  }
}

TEST_CASE("a preset may be a file beside the scenario, and its keys may be overridden") {
  const Scratch scratch;
  scratch.file("tiny.toml",
               "[model]\nlayers = 2\nhidden = 64\nheads = 4\nffn = 256\nvocab = 1000\n"
               "[training]\nsequence = 128\n");
  std::string text = kSound;
  text.replace(text.find("llama-1.8b"), 10, "./tiny.toml");
  const spec::Scenario scenario =
      load_scenarios(scratch.file("s.toml", text), Set{"model.layers=3"}).front();
  CHECK(scenario.model.name == "tiny");
  CHECK(scenario.model.layers == 3);
  CHECK(scenario.model.hidden == 64);
  CHECK(scenario.training.sequence == 128);
}

TEST_CASE("a preset file holds what it describes and nothing else") {
  const Scratch scratch;
  scratch.file("tiny.toml", "[model]\nlayers = 2\npreset = \"x\"\n[training]\nmicro_batch = 1\n");
  std::string text = kSound;
  text.replace(text.find("llama-1.8b"), 10, "./tiny.toml");
  const auto file = scratch.file("s.toml", text);
  const std::vector<Problem> problems = problems_of([&] { load_scenarios(file); });
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].key == "model.preset");
  CHECK(problems[0].place.line == 3);
  CHECK(problems[1].key == "training.micro_batch");
}

TEST_CASE("what is not given follows from what is") {
  const spec::Model model = load_text(R"(
[model]
layers = 2
hidden = 96
heads = 6
ffn = 384
vocab = 1000
[training]
global_batch = 8
micro_batch = 1
sequence = 256
[cluster]
preset = "vista"
gpus = 1
[calibration]
profile = "gh200-datasheet"
)")
                                .front()
                                .model;
  CHECK(model.kv_heads == 6);
  CHECK(model.head_dim == 16);
  CHECK(model.positions == spec::Positions::learned);
  CHECK(model.max_positions == 256);
}

TEST_CASE("the hash names what is simulated: values, not comments, order or names") {
  const std::string hash = load_text(kSound).front().hash;
  CHECK(hash.size() == 16);
  CHECK(load_text("# a comment\nname = \"x\"\ndescription = \"y\"\n" + kSound).front().hash ==
        hash);
  CHECK(load_text(kSound, {"training.sequence=2048", "strategy.kernels=fused"}).front().hash ==
        hash);
  CHECK(load_text(kSound, {"cluster.nic_bandwidth=50GB/s"}).front().hash == hash);
  for (const char* change : {"strategy.density=0.011", "cluster.nic_bandwidth=401Gbps",
                             "calibration.profile=gh200-datasheet", "model.layers=23"}) {
    INFO(change);
    CHECK(load_text(kSound, {change}).front().hash != hash);
  }
}

TEST_CASE("the hash counts what a network's file says") {
  const Scratch scratch;
  const auto hash_with = [&](const std::string& cable) {
    std::string text = "from,to,bandwidth,count\n";
    for (int node = 0; node < 600; ++node) text += fmt::format("node {},leaf,{},1\n", node, cable);
    const auto file = scratch.file("network.csv", text).string();
    return load_text(kSound, {"cluster.fabric=graph", "cluster.graph=" + file}).front().hash;
  };
  const std::string hash = hash_with("400Gbps");
  CHECK(hash_with("400Gbps") == hash);
  CHECK(hash_with("200Gbps") != hash);
}

TEST_CASE("a folder and a file too large to be a scenario are refused") {
  CHECK(problems_of([] { load_scenarios("tests"); }).size() == 1);
  const std::vector<Problem> problems = problems_of([] { load_text(std::string(1'100'000, '#')); });
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].what.find("too many") != std::string::npos);
}

TEST_CASE("another GPU count is the same job; weak scaling grows the batch with it") {
  const spec::Scenario base = load_text(kSound).front();
  const spec::Scenario strong = with_gpus(base, 16, false);
  CHECK(strong.cluster.gpus == 16);
  CHECK(strong.training.global_batch == 1024);
  CHECK(spec::micro_batches(strong) == 8);
  CHECK(strong.hash == load_text(kSound, {"cluster.gpus=16"}).front().hash);
  const spec::Scenario weak = with_gpus(base, 16, true);
  CHECK(weak.training.global_batch == 256);
  CHECK(spec::micro_batches(weak) == spec::micro_batches(base));
}

TEST_CASE("a GPU count that breaks a rule is refused at --gpus") {
  const spec::Scenario base = load_text(kSound).front();
  for (const int gpus : {0, -4, 48, 1024, 2'000'000'000}) {
    INFO(gpus);
    const std::vector<Problem> problems = problems_of([&] { with_gpus(base, gpus, false); });
    REQUIRE_FALSE(problems.empty());
    CHECK(problems[0].key == "--gpus");
  }
  // 16 sequences per GPU stay 16 on 6 GPUs, two micro-batches of 8 each; 24 on 3 do not halve.
  CHECK(with_gpus(base, 6, true).training.global_batch == 96);
  const spec::Scenario three =
      load_text(kSound, {"training.global_batch=24", "cluster.gpus=3"}).front();
  CHECK(with_gpus(three, 4, true).training.global_batch == 32);
  const spec::Scenario uneven =
      load_text(kSound, {"training.global_batch=24", "training.micro_batch=4", "cluster.gpus=3"})
          .front();
  CHECK(with_gpus(uneven, 5, true).training.global_batch == 40);
}

TEST_CASE("counts told later: what depends on the count is left to them, the rest is not") {
  const Scratch scratch;
  const auto file = scratch.file("s.toml", kSound);
  // 1000 is 125 micro-batches of 8: not on the file's 64 GPUs, but on 5, 25 and 125.
  const Set batch = {"training.global_batch=1000"};
  CHECK(problems_of([&] { load_scenarios(file, batch); }).size() == 1);
  const spec::Scenario base = load_scenarios(file, batch, GpuCount::told_later).front();
  CHECK(with_gpus(base, 25, false).cluster.gpus == 25);
  const std::vector<Problem> refused = problems_of([&] { with_gpus(base, 64, false); });
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].key == "--gpus");
  CHECK(refused[0].what.starts_with("64 GPUs: training.global_batch: "));
  const Set more = {"training.global_batch=1000", "cluster.gpus=601", "training.optimizer=sgd"};
  const std::vector<Problem> rest =
      problems_of([&] { load_scenarios(file, more, GpuCount::told_later); });
  REQUIRE(rest.size() == 1);
  CHECK(rest[0].key == "training.optimizer");
}

TEST_CASE("a cluster alone: preset, overrides, the whole machine unless said otherwise") {
  const spec::Cluster flat = load_cluster("flat-50GBps");
  CHECK(flat.nodes == 65536);
  CHECK(flat.gpus == 65536);
  CHECK(flat.nic_bandwidth == 50_GBps);
  CHECK(flat.fabric.latency == 5_us);
  CHECK(flat.fabric.kind == spec::FabricKind::switch_);
  const spec::Cluster vista =
      load_cluster("topologies/vista.toml", Set{"cluster.gpus=4", "cluster.nic_bandwidth=200Gbps"});
  CHECK(vista.name == "vista");
  CHECK(vista.gpus == 4);
  CHECK(vista.nic_bandwidth == 25_GBps);
  CHECK(problems_of([] { load_cluster("vistas"); }).front().hint == "did you mean \"vista\"?");
  CHECK(problems_of([] { load_cluster("vista", Set{"cluster.gpus=601"}); }).size() == 1);
  CHECK(problems_of([] { load_cluster("vista", Set{"training.micro_batch=1"}); }).size() == 1);
}

}  // namespace
}  // namespace scapesim::scenario
