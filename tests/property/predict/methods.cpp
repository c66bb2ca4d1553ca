// SPDX-License-Identifier: Apache-2.0
// Every row of the table of methods: what it sends against its paper's formula, against dense when
// its compression is undone, alone, and against what the network could carry at best.
#include <catch2/catch.hpp>

#include "sim/result/metrics.hpp"
#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::Method;
using spec::Sharding;

namespace {

/// Two GPUs per node, so that methods with a hierarchy show it.
constexpr int kGroup = 2;

spec::Scenario scenario_for(Method method, Sharding sharding, const spec::Model& model, int ranks) {
  spec::Scenario s = scenario_of(model, ranks);
  s.cluster.gpus_per_node = ranks == 1 ? 1 : kGroup;
  s.cluster.nodes = ranks / s.cluster.gpus_per_node;
  s.cluster.node_link_bandwidth = BytesPerSecond(450e9);
  s.cluster.gpu.memory = Bytes(1e13);
  s.strategy.method = method;
  s.strategy.sharding = sharding;
  s.strategy.density = spec::rule_of(method).density;
  if (method == Method::scape) s.training.optimizer = spec::Optimizer::adams;
  REQUIRE(spec::violations(s).empty());
  return s;
}

spec::Scenario scenario_for(Method method, int ranks) {
  return scenario_for(method, spec::rule_of(method).shardings.front(), llama_1_8b(), ranks);
}

/// Bytes that a rank sends on rings and pairwise exchanges per training step, scalars left out.
double sent_bytes(const Prediction& prediction) {
  double sum = 0;
  for (const graph::Operation& operation : prediction.graph.classes.at(0).operations) {
    if (operation.work != graph::Work::collective || operation.bytes <= Bytes(4)) continue;
    const graph::Collective& call = prediction.graph.collectives.at(index(operation.collective));
    sum += call.bytes.si() * result::busbw_factor(call.kind, call.group_size);
  }
  return sum / prediction.graph.training_steps;
}

struct Sizes {
  double all, matrices, vectors, last_layer, factors;
};
Sizes sizes_of(const spec::Scenario& s) {
  const workload::Workload w = workload::workload_of(s.model, s.training);
  Sizes sizes{};
  for (const workload::Tensor& tensor : workload::tensors_of(w)) {
    const auto n = static_cast<double>(tensor.numel);
    (tensor.always_selected ? sizes.vectors : sizes.matrices) += n;
    if (!tensor.always_selected)
      sizes.factors += static_cast<double>(tensor.rows) + n / static_cast<double>(tensor.rows);
  }
  sizes.all = sizes.matrices + sizes.vectors;
  sizes.last_layer = static_cast<double>(workload::parameters_of(w.layers.back()));
  return sizes;
}

/// The papers' volumes with fp32 gradients and bf16 parameters, one micro-batch. A layer whose
/// backward pass follows its forward pass is gathered once.
double closed_form(const spec::Scenario& s) {
  const Sizes n = sizes_of(s);
  const double p = s.cluster.gpus, a = (p - 1) / p;
  const double d = s.strategy.density;
  const double inside = (kGroup - 1.0) / kGroup;
  const bool sharded = s.strategy.sharding != Sharding::none;
  const double gathered_again = n.all - n.last_layer;
  switch (s.strategy.method) {
    case Method::dense:
      if (!sharded) return 8 * n.all * a;
      if (s.strategy.sharding == Sharding::zero1 || s.strategy.sharding == Sharding::zero2)
        return (4 + 2) * n.all * a;
      if (s.strategy.sharding == Sharding::hsdp)
        return (2 * (n.all + gathered_again) + 4 * n.all) * inside +
               8 * n.all / kGroup * (1 - kGroup / p);
      return (2 * (n.all + gathered_again) + 4 * n.all) * a;
    case Method::scape:
      return (sharded ? 16 : 8) * d * n.all * a + n.all / 8 * a;
    case Method::topk:
      return 8 * d * n.all * (p - 1);
    case Method::dgc:
      return 8 * d * n.matrices * (p - 1) + 8 * n.vectors * a;
    case Method::demo:
      return 12.0 * s.strategy.dct_topk / (s.strategy.dct_chunk * s.strategy.dct_chunk) * n.all *
             (p - 1);
    case Method::qsdp:  // 8 bits, and 8 bytes for every 1024 values
      return (n.all + gathered_again + n.all) * a * (1 + 8.0 / 1024);
    case Method::zeropp:
      return n.all * a + gathered_again * inside + n.all / 2 * inside +
             n.all / 2 / kGroup * (1 - kGroup / p);
    case Method::oktopk:
      return 24 * d * n.all * a;
    case Method::onebit_adam:
      return 2 * n.all / 8 * a;
    case Method::powersgd:
      return 8 * (s.strategy.low_rank * n.factors + n.vectors) * a;
    case Method::local_sgd:
      return 8 * n.all * a / s.strategy.local_steps;
  }
  throw InternalError("method without a formula");
}

double excess(const spec::Scenario& s) {
  return sent_bytes(prediction_of(s, round_profile())) / closed_form(s) - 1;
}

/// The method with its compression undone.
void undo_compression(spec::Scenario& s) {
  s.strategy.density = 1;
  s.strategy.weight_bits = s.strategy.gradient_bits = 16;
  s.strategy.zeropp.secondary = false;
  s.strategy.dct_topk = s.strategy.dct_chunk * s.strategy.dct_chunk;
  s.strategy.low_rank = 100'000;
  s.strategy.local_steps = 1;
  s.strategy.dense_steps = 1;
  s.strategy.at_step = 0;
  s.training.gradient_dtype = spec::GradientDtype::bf16;
}

spec::Scenario dense_like(spec::Scenario s) {
  s.strategy.method = Method::dense;
  return s;
}

}  // namespace

TEST_CASE("every method goes with a sharding of its row and says why with no other") {
  for (const strategy::Method& row : strategy::methods()) {
    const spec::MethodRule& rule = spec::rule_of(row.method);
    INFO(name_of(row.method));
    for (const auto& [sharding, word] : names<Sharding>()) {
      INFO(word);
      spec::Scenario s = scenario_for(row.method, 8);
      s.strategy.sharding = sharding;
      const auto list = spec::violations(s);
      const bool goes = std::ranges::find(rule.shardings, sharding) != rule.shardings.end();
      CHECK(list.empty() == goes);
      if (goes) continue;
      CHECK(list.front().key == "strategy.sharding");
      CHECK(list.front().what.find(rule.why) != std::string::npos);
      CHECK_FALSE(list.front().hint.empty());
    }
  }
}

TEST_CASE(
    "[M302] [M311] [M312] [M313] [M315] [M316] [M320] [M326] [M331] [M335] [M341] what every "
    "method sends is its formula within 1 %, and never less") {
  for (const strategy::Method& row : strategy::methods())
    for (const Sharding sharding : spec::rule_of(row.method).shardings) {
      INFO(name_of(row.method) << ", " << name_of(sharding));
      const double over = excess(scenario_for(row.method, sharding, llama_1_8b(), 64));
      CHECK(over < 0.01);
      // Counts are floors: each tensor sends less than one element short of its share.
      CHECK(over > -1e-4);
    }
}

TEST_CASE("formulas are met the better the larger the tensors") {
  for (const strategy::Method& row : strategy::methods()) {
    INFO(name_of(row.method));
    const Sharding sharding = spec::rule_of(row.method).shardings.front();
    const double small =
        std::abs(excess(scenario_for(row.method, sharding, llama({2, 256, 4, 4, 768}), 16)));
    const double large =
        std::abs(excess(scenario_for(row.method, sharding, llama({2, 4096, 32, 32, 12'288}), 16)));
    CHECK(large < 0.01);
    CHECK(large <= small + 1e-12);
  }
}

TEST_CASE("a method whose compression is undone sends what dense sends, or more") {
  for (const strategy::Method& row : strategy::methods()) {
    INFO(name_of(row.method));
    spec::Scenario s = scenario_for(row.method, 16);
    undo_compression(s);
    const double sent = sent_bytes(prediction_of(s, round_profile()));
    const double dense = sent_bytes(prediction_of(dense_like(s), round_profile()));
    CHECK(sent >= (1 - 1e-12) * dense);
  }
}

TEST_CASE("a rank alone communicates nothing, whatever the method") {
  for (const strategy::Method& row : strategy::methods()) {
    INFO(name_of(row.method));
    const Prediction alone = prediction_of(scenario_for(row.method, 1), round_profile());
    CHECK(alone.graph.collectives.empty());
    CHECK(run_of(alone).communication.empty());
  }
}

TEST_CASE("no method is faster than its own work and its own bytes allow") {
  for (const strategy::Method& row : strategy::methods()) {
    INFO(name_of(row.method));
    const spec::Scenario s = scenario_for(row.method, 16);
    const Prediction prediction = prediction_of(s, round_profile());
    double compute = 0;
    for (const graph::Operation& operation : prediction.graph.classes.at(0).operations)
      if (operation.stream == graph::Stream::compute) compute += operation.duration.si();
    const double steps = prediction.graph.training_steps;
    const double step = run_of(prediction).step_time.si();
    CHECK(step >= (1 - 1e-9) * compute / steps);
    // A node's adapter carries what its ranks send to other nodes, at least.
    for (const graph::Collective& call : prediction.graph.collectives)
      CHECK(call.lower_bound >= Seconds(0));
    const auto& b = run_of(prediction).breakdown;
    const Seconds sum =
        b.compute + b.optimizer + b.exposed_communication + b.copy + b.host + b.bubble;
    CHECK(sum.si() == Approx(step).epsilon(1e-9));
  }
}

TEST_CASE("no method is slower on a faster network") {
  for (const strategy::Method& row : strategy::methods()) {
    INFO(name_of(row.method));
    spec::Scenario s = scenario_for(row.method, 16);
    double before = 1e300;
    for (const double gigabytes : {1.0, 10.0, 100.0}) {
      s.cluster.nic_bandwidth = BytesPerSecond(gigabytes * 1e9);
      const double step = step_of(s, round_profile());
      CHECK(step <= before * (1 + 1e-9));
      before = step;
    }
  }
}

TEST_CASE("gradients may be compressed beside the backward pass, and are then no slower") {
  for (const Method method : {Method::topk, Method::dgc, Method::powersgd}) {
    INFO(name_of(method));
    spec::Scenario s = scenario_for(method, 16);
    const Prediction behind = prediction_of(s, round_profile());
    s.training.overlap_gradients = true;
    const Prediction beside = prediction_of(s, round_profile());
    CHECK(run_of(beside).step_time <= run_of(behind).step_time * (1 + 1e-9));
    CHECK(sent_bytes(beside) == Approx(sent_bytes(behind)).epsilon(1e-3));
  }
}
