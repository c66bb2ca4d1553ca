// SPDX-License-Identifier: Apache-2.0
// What a prediction answers: infeasible plans as values, identity, [M71] rates, [M78] energy and
// cost, [M77] the interval, warnings.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

const result::Infeasible& infeasible_of(const Prediction& prediction) {
  REQUIRE(std::holds_alternative<result::Infeasible>(prediction.outcome));
  return std::get<result::Infeasible>(prediction.outcome);
}

spec::Scenario on_gh200(spec::Scenario scenario) {
  scenario.cluster.gpu.name = "GH200-96GB";
  scenario.cluster.gpu.memory = Bytes(96 * 1073741824.0);
  return scenario;
}

std::vector<result::Warning> warnings_of(const spec::Scenario& scenario,
                                         const cost::Profile& profile) {
  return run_of(prediction_of(scenario, profile)).warnings;
}

bool warns_of(const std::vector<result::Warning>& warnings, std::string_view code,
              std::string_view words) {
  return std::ranges::any_of(warnings, [&](const result::Warning& warning) {
    return warning.code == code && warning.message.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("Llama-70B by data parallelism alone does not fit, and says so as a value") {
  const spec::Scenario scenario = on_gh200(scenario_of(llama_70b(), 64));
  const Prediction prediction = prediction_of(scenario, round_profile());
  const result::Infeasible& answer = infeasible_of(prediction);
  // Parameters, gradients and AdamS state: 2 + 4 + 8 bytes each.
  CHECK(answer.need > Bytes(14 * 68'976'648'192.0));
  CHECK(answer.have == scenario.cluster.gpu.memory);
  CHECK_THAT(answer.reason, Catch::Contains("does not fit in GPU memory"));
  CHECK_FALSE(answer.hint.empty());
  CHECK(answer.need == answer.memory.total + answer.memory.context);
  CHECK(prediction.graph.classes.empty());
  CHECK(prediction.timeline.spans.empty());
}

TEST_CASE("a plan fits at exactly the capacity and not a byte below") {
  spec::Scenario scenario = scenario_of(llama_1_8b(), 8);
  const result::Memory memory = run_of(prediction_of(scenario, round_profile())).memory;
  scenario.cluster.gpu.memory = memory.total + memory.context;
  CHECK(std::holds_alternative<result::Run>(prediction_of(scenario, round_profile()).outcome));
  scenario.cluster.gpu.memory -= Bytes(1);
  CHECK(
      std::holds_alternative<result::Infeasible>(prediction_of(scenario, round_profile()).outcome));
}

TEST_CASE("the hint names what would make the plan fit") {
  const auto hint_of = [](const spec::Scenario& scenario) {
    return infeasible_of(prediction_of(scenario, round_profile())).hint;
  };
  CHECK_THAT(hint_of(on_gh200(scenario_of(llama_70b(), 64))), Catch::Contains("split over GPUs"));
  CHECK_THAT(hint_of(on_gh200(scenario_of(llama_13b(), 64))), Catch::Contains("zero1"));
  spec::Scenario activations = on_gh200(scenario_of(llama_1_8b(), 8));
  activations.training.micro_batch = 256;
  activations.training.global_batch = 256 * 8;
  CHECK_THAT(hint_of(activations), Catch::Contains("training.micro_batch"));
  activations.training.micro_batch = 1;
  activations.training.sequence = 1'000'000;
  CHECK_THAT(hint_of(activations), Catch::Contains("training.sequence"));
  CHECK_THAT(hint_of(activations), Catch::Contains("recompute"));
  // Nothing that is set already, nothing that a rule refuses.
  activations.training.recompute = spec::Recompute::full;
  activations.training.sequence = 4'000'000;
  activations.model.vocab = 1000;  // small logits
  CHECK_THAT(hint_of(activations), Catch::Contains("training.sequence"));
  CHECK_THAT(hint_of(activations), !Catch::Contains("recompute"));
  spec::Scenario local = on_gh200(scenario_of(llama_13b(), 64));
  local.strategy.method = spec::Method::local_sgd;
  CHECK_THAT(hint_of(local), !Catch::Contains("zero1") && Catch::Contains("parallelism.tp"));
}

TEST_CASE("[M304] the hint of top-k names what it gathers, and no sharding that it cannot have") {
  const auto hint_of = [](double density, const spec::Model& model) {
    spec::Scenario scenario = on_gh200(scenario_of(model, 64));
    scenario.strategy.method = spec::Method::topk;
    scenario.strategy.density = density;
    return infeasible_of(prediction_of(scenario, round_profile())).hint;
  };
  CHECK_THAT(hint_of(0.1, llama_1_8b()), Catch::Contains("lower strategy.density"));
  CHECK_THAT(hint_of(0.001, llama_7b()), !Catch::Contains("zero1"));
}

TEST_CASE("a prediction carries who made it and from what") {
  spec::Scenario scenario = scenario_of(llama_500m(), 8);
  scenario.name = "a name";
  scenario.series = "a series";
  scenario.hash = "0123456789abcdef";
  const Prediction prediction = prediction_of(scenario, round_profile());
  const result::Run& run = run_of(prediction);
  CHECK(run.scenario == "a name");
  CHECK(run.series == "a series");
  // The hash names the scenario and the contents of the profile, not only its id.
  CHECK(run.hash.size() == 16);
  CHECK(run.hash == run_of(prediction_of(scenario, round_profile())).hash);
  cost::Profile edited = round_profile();
  edited.numbers["hbm.bandwidth_Bps"].value *= 1.01;
  CHECK(run.hash != run_of(prediction_of(scenario, edited)).hash);
  scenario.hash = "0123456789abcdee";
  CHECK(run.hash != run_of(prediction_of(scenario, round_profile())).hash);
  CHECK(run.calibration == "round");
  CHECK(run.weakest_provenance == "measured");
  CHECK(run.gpus == 8);
  CHECK(run.memory.capacity == scenario.cluster.gpu.memory);
}

TEST_CASE("the weakest provenance is that of the numbers used, not of all there are") {
  cost::Profile profile = round_profile();
  profile.numbers.at("copy.h2d_Bps").origin.kind = cost::Provenance::assumed;
  spec::Scenario scenario = scape_scenario(llama_500m(), 8, 0.01);
  CHECK(run_of(prediction_of(scenario, profile)).weakest_provenance == "measured");
  CHECK_FALSE(warns_of(warnings_of(scenario, profile), "assumed", "copy.h2d_Bps"));
  scenario.strategy.offload.residual = true;
  CHECK(run_of(prediction_of(scenario, profile)).weakest_provenance == "assumed");
  CHECK(warns_of(warnings_of(scenario, profile), "assumed", "copy.h2d_Bps"));
}

TEST_CASE("[M71] tokens per second and MFU follow from the step and the model's FLOPs") {
  spec::Scenario scenario = scenario_of(llama_500m(), 8);
  scenario.training.global_batch = 8 * 3;
  const Prediction prediction = prediction_of(scenario, round_profile());
  const result::Run& run = run_of(prediction);
  const double step = run.step_time.si();
  CHECK(run.tokens_per_second.si() == Approx(24 * 1024 / step).epsilon(1e-12));
  const auto work = workload::workload_of(scenario.model, scenario.training);
  CHECK(run.mfu == Approx(24 * work.model_flops.si() / (step * 8 * 1e15)).epsilon(1e-12));
}

TEST_CASE(
    "[M78] energy and cost are those of all GPUs for a step, unknown without power or price") {
  spec::Scenario scenario = scenario_of(llama_500m(), 8);
  cost::Profile profile = round_profile();
  const Prediction unknown = prediction_of(scenario, profile);
  CHECK_FALSE(run_of(unknown).energy.has_value());
  CHECK_FALSE(run_of(unknown).cost.has_value());
  scenario.cluster.gpu_power = Watts(700);
  scenario.cluster.gpu_price = DollarsPerSecond(0.001);
  const Prediction known = prediction_of(scenario, profile);
  const double step = run_of(known).step_time.si();
  CHECK(run_of(known).energy->si() == Approx(8 * 700 * step).epsilon(1e-12));
  CHECK(run_of(known).cost->si() == Approx(8 * 0.001 * step).epsilon(1e-12));
  profile.numbers["power.gpu_W"] = exactly(500, cost::Factor::power);  // measured beats data sheet
  CHECK(run_of(prediction_of(scenario, profile)).energy->si() ==
        Approx(8 * 500 * step).epsilon(1e-12));
}

TEST_CASE("[M77] without ranges the interval is the prediction; a range on the model widens it") {
  const spec::Scenario scenario = scenario_of(llama_500m(), 8);
  cost::Profile profile = round_profile();
  const PredictOptions options{.driver = engine::Driver::standalone, .interval_draws = 32};
  const Prediction sharp = predict(scenario, profile, options);
  CHECK(run_of(sharp).step_time_low == run_of(sharp).step_time);
  CHECK(run_of(sharp).step_time_high == run_of(sharp).step_time);
  profile.numbers.at("model.discrepancy").low = 0.9;
  profile.numbers.at("model.discrepancy").high = 1.2;
  const Prediction wide = predict(scenario, profile, options);
  const double step = run_of(wide).step_time.si();
  // The 5 % and 95 % quantiles of 32 stratified draws lie between the outermost slices.
  CHECK(run_of(wide).step_time_low.si() / step == Approx(0.9).margin(0.015));
  CHECK(run_of(wide).step_time_high.si() / step == Approx(1.2).margin(0.03));
}

TEST_CASE("a transport far below the line rate is named, with its share") {
  cost::Profile profile = round_profile();
  profile.numbers["network.transport_cap_Bps"] = exactly(3.5e9, cost::Factor::network);
  const spec::Scenario scenario = scenario_of(llama_500m(), 8);
  CHECK(warns_of(warnings_of(scenario, profile), "slow-transport", "7 %"));
  CHECK_FALSE(warns_of(warnings_of(scenario_of(llama_500m(), 1), profile), "slow-transport", ""));
  set(profile, "network.transport_cap_Bps", 45e9);
  CHECK_FALSE(warns_of(warnings_of(scenario, profile), "slow-transport", ""));
}

TEST_CASE("shapes outside the sampled curves are named") {
  spec::Scenario scenario = scenario_of(llama_500m(), 8);  // curves from 1024 to 4096 tokens
  CHECK_FALSE(warns_of(warnings_of(scenario, round_profile()), "extrapolation", ""));
  scenario.training.sequence = 512;
  CHECK(warns_of(warnings_of(scenario, round_profile()), "extrapolation", "512"));
  spec::Scenario narrow = scenario_of(llama_500m(), 8);
  narrow.model.heads = narrow.model.kv_heads = 48;
  narrow.model.head_dim = 32;
  CHECK(warns_of(warnings_of(narrow, round_profile()), "extrapolation", "head_dim 32"));
}

TEST_CASE("bulk collectives smaller than those that latency was fitted to are named") {
  cost::Profile profile = round_profile();
  profile.numbers["network.smallest_fitted_B"] = exactly(1e9, cost::Factor::latency);
  const auto warnings = warnings_of(scape_scenario(llama_500m(), 8, 0.01), profile);
  CHECK(warns_of(warnings, "extrapolation", "payload all-reduce"));
  CHECK(warns_of(warnings, "extrapolation", "mask all-gather"));
  CHECK_FALSE(warns_of(warnings_of(scenario_of(llama_500m(), 8), profile), "extrapolation", ""));
}

TEST_CASE("asking scape to overlap gradients changes nothing and is named") {
  spec::Scenario scenario = scape_scenario(llama_500m(), 8, 0.01);
  const double step = step_of(scenario, round_profile());
  scenario.training.overlap_gradients = true;
  CHECK(step_of(scenario, round_profile()) == step);
  CHECK(warns_of(warnings_of(scenario, round_profile()), "no-effect", "overlap_gradients"));
}

TEST_CASE("keys that speak of what a step does not have are named") {
  const auto warned = [](const auto& change, const std::string& key) {
    spec::Scenario scenario = scenario_of(llama_500m(), 8);
    scenario.cluster.host_memory = Bytes(1e12);
    scenario.cluster.host_memory_bandwidth = BytesPerSecond(1e11);
    scenario.cluster.host_link.bandwidth = BytesPerSecond(1e11);
    change(scenario);
    return warns_of(warnings_of(scenario, round_profile()), "no-effect", key);
  };
  const auto dropout = [](spec::Scenario& s) { s.training.attention_dropout = 0.1; };
  const auto written = [](spec::Scenario& s) {
    s.training.attention_dropout = 0.1;
    s.training.attention = spec::AttentionCore::unfused;
  };
  CHECK(warned(dropout, "attention_dropout"));
  CHECK_FALSE(warned(written, "attention_dropout"));
  CHECK(warned([](spec::Scenario& s) { s.parallelism.split_messages = true; }, "split_messages"));
  const auto offload = [](std::optional<int> layers) {
    return [layers](spec::Scenario& s) {
      s.training.activation_offload = true;
      s.training.offload_layers = layers;
    };
  };
  CHECK(warned(offload(0), "activation_offload"));
  CHECK_FALSE(warned(offload(1), "activation_offload"));
  CHECK_FALSE(warned(offload(std::nullopt), "activation_offload"));
}

TEST_CASE("offloaded state has to fit in host memory, of all GPUs of a node together") {
  spec::Scenario scenario = scape_scenario(llama_1_8b(), 4, 0.01);
  scenario.cluster.nodes = 1;
  scenario.cluster.gpus_per_node = 4;
  scenario.cluster.node_link_bandwidth = BytesPerSecond(300e9);
  scenario.strategy.sharding = spec::Sharding::zero1;
  scenario.strategy.offload = {.residual = true, .replica = true};
  scenario.cluster.host_memory = Bytes(4 * 8 * 1'831'201'280.0);  // residual and replica, fp32
  CHECK(std::holds_alternative<result::Run>(prediction_of(scenario, round_profile()).outcome));
  scenario.cluster.host_memory -= Bytes(1);
  const Prediction prediction = prediction_of(scenario, round_profile());
  const result::Infeasible& answer = infeasible_of(prediction);
  CHECK(answer.need.si() == 4 * 8 * 1'831'201'280.0);
  CHECK(answer.have == scenario.cluster.host_memory);
  CHECK_THAT(answer.reason, Catch::Contains("host memory"));
  CHECK_THAT(answer.hint, Catch::Contains("strategy.offload"));
}
