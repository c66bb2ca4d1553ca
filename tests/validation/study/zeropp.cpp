// SPDX-License-Identifier: Apache-2.0
// ZeRO++'s published relations on the configuration of DeepSpeed's tutorial (docs/_tutorials/
// zeropp.md: GPT-2 of 40 layers and width 6144, sequence 512, full recomputation, fp16, DGX-2 nodes
// of 16 V100) and the 24 nodes of the paper (arXiv 2306.10209, abstract and sec. 4.1: volume 4x
// smaller; one to eight InfiniBand connections of 100 Gb/s). The tutorial's step times are pictures
// of logs and the paper's other models are not described in full, so that times are held in shape.
#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

spec::Cluster dgx2(int nodes, int adapters) {
  spec::Cluster cluster = scenario_of(gpt_345m(), 1).cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = 16;
  cluster.gpus = nodes * 16;
  cluster.nics_per_node = adapters;
  cluster.nic_bandwidth = BytesPerSecond(12.5e9);
  cluster.node_link_bandwidth = BytesPerSecond(150e9);  // NVLink 2, data sheet
  cluster.gpu.peak_bf16 = FlopsPerSecond(125e12);       // fp16, data sheet
  cluster.gpu.memory = Bytes(32.0 * (1 << 30));
  return cluster;
}

spec::Scenario tutorial(int nodes, int adapters, int micro_batch) {
  spec::Scenario s;
  s.name = "zeropp";
  s.model = gpt({40, 6144, 32, 1024, 50'304});
  s.cluster = dgx2(nodes, adapters);
  s.training = training_of(micro_batch, 512);
  s.training.global_batch = std::int64_t{micro_batch} * s.cluster.gpus;
  s.training.precision = spec::Precision::fp16;
  s.training.gradient_dtype = spec::GradientDtype::fp16;
  s.training.optimizer = spec::Optimizer::adamw;
  s.training.recompute = spec::Recompute::full;
  s.strategy.sharding = spec::Sharding::zero3;
  return s;
}

spec::Scenario plus_plus(spec::Scenario s, spec::ZeroPlusPlus parts = {}) {
  s.strategy.method = spec::Method::zeropp;
  s.strategy.zeropp = parts;
  return s;
}

/// V100's memory under the round rates.
cost::Profile profile() {
  cost::Profile profile = round_profile();
  profile.numbers["hbm.bandwidth_Bps"] = exactly(0.8e12, cost::Factor::hbm);
  return profile;
}

/// Bytes that the adapters of the fullest node carry one way in a step.
double between_nodes(const spec::Scenario& s) {
  const Prediction prediction = prediction_of(s, profile());
  double sum = 0;
  for (const graph::Operation& operation : prediction.graph.classes.at(0).operations) {
    if (operation.work != graph::Work::collective) continue;
    for (const graph::Phase& phase :
         prediction.graph.collectives.at(index(operation.collective)).phases) {
      double flows = 0;
      for (const graph::Load& load : phase.loads)
        if (prediction.graph.resources.at(index(load.resource)).name == "NIC")
          flows = std::max(flows, load.flows);
      sum += phase.bytes.si() * flows * s.cluster.nics_per_node;
    }
  }
  return sum;
}

double speedup(const spec::Scenario& s) {
  return step_of(s, profile()) / step_of(plus_plus(s), profile());
}

}  // namespace

TEST_CASE("[M311] [M312] [M313] ZeRO++ sends a quarter of ZeRO-3's volume between nodes") {
  const spec::Scenario s = tutorial(24, 8, 1);
  const double all = between_nodes(s);
  CHECK(all / between_nodes(plus_plus(s)) == Approx(4).epsilon(0.15));
  // Each part by itself, of 6 N: qwZ halves both gathers, hpZ drops one, qgZ leaves a quarter of
  // the gradients.
  const auto share = [&](spec::ZeroPlusPlus parts) {
    return between_nodes(plus_plus(s, parts)) / all;
  };
  CHECK(share({.weights = true, .secondary = false, .gradients = false}) ==
        Approx(4.0 / 6).epsilon(0.03));
  CHECK(share({.weights = false, .secondary = true, .gradients = false}) ==
        Approx(4.0 / 6).epsilon(0.03));
  CHECK(share({.weights = false, .secondary = false, .gradients = true}) ==
        Approx(4.5 / 6).epsilon(0.03));
  CHECK(share({.weights = false, .secondary = false, .gradients = false}) ==
        Approx(1).epsilon(1e-6));
}

TEST_CASE("ZeRO++ gains more the slower the network and the fewer tokens a GPU has") {
  double before = 0;
  for (const int adapters : {8, 4, 2, 1}) {
    const double gain = speedup(tutorial(24, adapters, 2));
    CAPTURE(adapters, gain);
    CHECK(gain >= before);
    CHECK(gain < 4.2);
    before = gain;
  }
  // The abstract's 2.16x is a gain of this kind, below the volume's 4x. Where the network is fast
  // enough to hide all gathers, as this model's overlap has it at eight connections, coding costs
  // more than it saves.
  CHECK(before > 1.9);
  CHECK(before >= speedup(tutorial(24, 1, 8)));
}
