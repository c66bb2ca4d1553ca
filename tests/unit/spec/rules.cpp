// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "sim/spec/spec.hpp"

namespace scapesim::spec {
namespace {

using namespace literals;

Scenario sound() {
  Scenario s;
  s.model.layers = 24;
  s.model.hidden = 2560;
  s.model.heads = 32;
  s.model.kv_heads = 8;
  s.model.head_dim = 80;
  s.model.positions = Positions::rope;
  s.training.global_batch = 1024;
  s.training.micro_batch = 8;
  s.training.sequence = 2048;
  s.training.optimizer = Optimizer::adams;
  s.strategy.method = Method::scape;
  s.strategy.density = 0.01;
  s.cluster.nodes = 600;
  s.cluster.gpus = 64;
  s.cluster.gpu.peak_bf16 = 989_TFLOPps;
  s.cluster.host_link.bandwidth = 450_GBps;
  s.cluster.host_memory = 116_GiB;
  s.cluster.host_memory_bandwidth = 500_GBps;
  s.cluster.host_memory_bandwidth = 500_GBps;
  return s;
}

using Change = std::function<void(Scenario&)>;

std::vector<std::string> broken_by(const Change& change) {
  Scenario scenario = sound();
  change(scenario);
  std::vector<std::string> keys;
  for (const Violation& violation : violations(scenario)) keys.push_back(violation.key);
  return keys;
}

using Keys = std::vector<std::string>;

TEST_CASE("the ranks that share parameters are all that model parallelism leaves") {
  Scenario s = sound();
  CHECK(data_parallel_size(s) == 64);
  CHECK(micro_batches(s) == 2);
  s.parallelism = {.tp = 4, .pp = 2, .cp = 2};
  CHECK(data_parallel_size(s) == 4);
  CHECK(micro_batches(s) == 32);
}

TEST_CASE("a sound scenario breaks no rule") {
  CHECK(violations(sound()).empty());
  CHECK(broken_by([](Scenario& s) { s.strategy.sharding = Sharding::zero1; }).empty());
  CHECK(broken_by([](Scenario& s) {
          s.strategy = {};
          s.training.overlap_gradients = true;
          s.training.optimizer = Optimizer::adamw;
        }).empty());
}

TEST_CASE("the global batch is whole micro-batches on every rank, exactly") {
  CHECK(broken_by([](Scenario& s) { s.training.global_batch = 512; }).empty());
  CHECK(broken_by([](Scenario& s) { s.training.global_batch = 513; }) ==
        Keys{"training.global_batch"});
  CHECK(broken_by([](Scenario& s) { s.training.global_batch = 256; }) ==
        Keys{"training.global_batch"});
  CHECK(broken_by([](Scenario& s) { s.cluster.gpus = 48; }) == Keys{"training.global_batch"});
}

TEST_CASE("a step has at most 16,384 micro-batches") {
  const auto batch = [](std::int64_t sequences) {
    return broken_by([=](Scenario& s) {
      s.cluster.gpus = 1;
      s.training.micro_batch = 1;
      s.training.global_batch = sequences;
    });
  };
  CHECK(batch(16'384).empty());
  CHECK(batch(16'385) == Keys{"training.global_batch"});
}

TEST_CASE("a job fits its cluster and fills its nodes") {
  const auto gpus = [](int count, int per_node) {
    return broken_by([=](Scenario& s) {
      s.cluster.gpus = count;
      s.cluster.gpus_per_node = per_node;
      s.cluster.nodes = 600 / per_node;
      s.cluster.node_link_bandwidth = 450_GBps;
      s.training.global_batch = 8 * count;
    });
  };
  CHECK(gpus(600, 1).empty());
  CHECK(gpus(601, 1) == Keys{"cluster.gpus"});
  CHECK(gpus(16, 8).empty());
  CHECK(gpus(4, 8).empty());  // part of one node
  CHECK(gpus(12, 8) == Keys{"cluster.gpus"});
  CHECK(gpus(608, 8) == Keys{"cluster.gpus"});
}

TEST_CASE("several GPUs per node need a link, a fat tree needs racks") {
  CHECK(broken_by([](Scenario& s) { s.cluster.gpus_per_node = 4; }) ==
        Keys{"cluster.node_link_bandwidth"});
  CHECK(broken_by([](Scenario& s) { s.cluster.fabric.kind = FabricKind::fat_tree; }) ==
        Keys{"cluster.nodes_per_rack"});
}

TEST_CASE("heads divide into groups and rotary positions turn pairs") {
  CHECK(broken_by([](Scenario& s) { s.model.kv_heads = 7; }) == Keys{"model.kv_heads"});
  CHECK(broken_by([](Scenario& s) { s.model.head_dim = 81; }) == Keys{"model.head_dim"});
  const auto positions = [](int rows) {
    return broken_by([=](Scenario& s) {
      s.model.positions = Positions::learned;
      s.model.max_positions = rows;
    });
  };
  CHECK(positions(2048).empty());
  CHECK(positions(2047) == Keys{"training.sequence"});
}

TEST_CASE("SCAPE is an optimizer on AdamS with one payload after the backward pass") {
  CHECK(broken_by([](Scenario& s) { s.training.optimizer = Optimizer::adamw; }) ==
        Keys{"training.optimizer"});
  CHECK(broken_by([](Scenario& s) { s.training.overlap_gradients = true; }).empty());
  CHECK(broken_by([](Scenario& s) { s.strategy.mask_delay = 0; }) == Keys{"strategy.mask_delay"});
  CHECK(broken_by([](Scenario& s) {
          s.strategy.mask_delay = 0;
          s.strategy.mask_wait = MaskWait::blocking;
        }).empty());
}

TEST_CASE("offloading needs something to move and a place for it") {
  CHECK(broken_by([](Scenario& s) { s.strategy.offload.residual = true; }).empty());
  CHECK(broken_by([](Scenario& s) { s.strategy.offload.replica = true; }) ==
        Keys{"strategy.offload"});
  CHECK(broken_by([](Scenario& s) {
          s.strategy.offload.residual = true;
          s.cluster.host_memory = 0_B;
        }) == Keys{"strategy.offload"});
  CHECK(broken_by([](Scenario& s) {
          s.strategy.offload.residual = true;
          s.cluster.host_memory_bandwidth = BytesPerSecond(0);
        }) == Keys{"strategy.offload"});
  CHECK(broken_by([](Scenario& s) {
          s.strategy.offload.residual = true;
          s.cluster.host_memory_bandwidth = 0_GBps;
        }) == Keys{"strategy.offload"});
}

TEST_CASE("dense sends everything") {
  CHECK(broken_by([](Scenario& s) { s.strategy.method = Method::dense; }) ==
        Keys{"strategy.density"});
}

TEST_CASE("what this version does not simulate is refused by name") {
  const std::vector<std::pair<Change, std::string>> changes = {
      {[](Scenario& s) { s.training.precision = Precision::mxfp8; }, "training.precision"},
      {[](Scenario& s) {
         s.strategy = {};
         s.training.optimizer = Optimizer::lamb;
       },
       "training.optimizer"},
  };
  for (const auto& [change, key] : changes) {
    INFO(key);
    Scenario scenario = sound();
    change(scenario);
    const std::vector<Violation> list = violations(scenario);
    REQUIRE(list.size() == 1);
    CHECK(list[0].key == key);
    CHECK(list[0].what.find("is not simulated in this version") != std::string::npos);
    CHECK_FALSE(list[0].hint.empty());
  }
}

Scenario dense_sound() {
  Scenario s = sound();
  s.strategy = {};
  s.model.layers = 24;
  return s;
}

Keys dense_broken_by(const Change& change) {
  Scenario scenario = dense_sound();
  change(scenario);
  Keys keys;
  for (const Violation& violation : violations(scenario)) keys.push_back(violation.key);
  return keys;
}

TEST_CASE("splits of the model that fit the job break no rule") {
  using P = Parallelism;
  for (const P& parallelism :
       {P{.tp = 2}, P{.pp = 4}, P{.tp = 2, .pp = 2, .sequence_parallel = true},
        P{.pp = 4, .virtual_stages = 2, .schedule = Schedule::interleaved}, P{.cp = 2},
        P{.pp = 2, .schedule = Schedule::zb_h1},
        P{.pp = 2, .virtual_stages = 2, .schedule = Schedule::dualpipe},
        P{.pp = 2, .stage_layers = {11, 13}}})
    CHECK(dense_broken_by([&](Scenario& s) { s.parallelism = parallelism; }) == Keys{});
  for (const Sharding sharding : {Sharding::zero2, Sharding::zero3, Sharding::fsdp, Sharding::hsdp})
    CHECK(dense_broken_by([&](Scenario& s) { s.strategy.sharding = sharding; }) == Keys{});
}

TEST_CASE("splits that cannot be are refused by the key that says so") {
  using P = Parallelism;
  const std::vector<std::pair<P, std::string>> cases = {
      {{.tp = 3}, "parallelism.tp"},
      {{.pp = 32}, "parallelism.pp"},
      {{.pp = 16}, "parallelism.pp"},
      {{.pp = 2, .stage_layers = {24}}, "parallelism.stage_layers"},
      {{.pp = 2, .stage_layers = {12, 13}}, "parallelism.stage_layers"},
      {{.pp = 2, .virtual_stages = 2}, "parallelism.virtual_stages"},
      {{.pp = 2, .schedule = Schedule::interleaved}, "parallelism.virtual_stages"},
      {{.virtual_stages = 2, .schedule = Schedule::interleaved}, "parallelism.virtual_stages"},
      {{.virtual_stages = 2, .schedule = Schedule::dualpipe}, "parallelism.schedule"},
      {{.pp = 2, .schedule = Schedule::dualpipe}, "parallelism.schedule"},
      {{.pp = 2, .expert_overlap = ExpertOverlap::paired}, "parallelism.expert_overlap"},
      {{.pp = 2, .virtual_stages = 3, .schedule = Schedule::dualpipe}, "parallelism.schedule"},
  };
  for (const auto& [parallelism, key] : cases) {
    INFO(key << " pp " << parallelism.pp);
    const Keys keys = dense_broken_by([&](Scenario& s) { s.parallelism = parallelism; });
    CHECK(std::ranges::find(keys, key) != keys.end());
  }
}

TEST_CASE("interleaved stages take micro-batches in rounds of pp") {
  const auto change = [](int per_rank) {
    return [=](Scenario& s) {
      s.parallelism = {.pp = 4, .virtual_stages = 2, .schedule = Schedule::interleaved};
      s.training.global_batch = 16 * s.training.micro_batch * per_rank;
    };
  };
  CHECK(dense_broken_by(change(8)).empty());
  CHECK(dense_broken_by(change(6)) == Keys{"training.global_batch"});
}

TEST_CASE("sharded parameters go with a pipeline, not with its backward pass in halves or scape") {
  using P = Parallelism;
  const auto broken = [](const P& parallelism, Sharding sharding) {
    return dense_broken_by([&](Scenario& s) {
      s.parallelism = parallelism;
      s.strategy.sharding = sharding;
    });
  };
  const P halves{.pp = 2, .schedule = Schedule::zb_h1};
  const P chunks{.pp = 2, .virtual_stages = 2, .schedule = Schedule::interleaved};
  for (const Sharding sharding : {Sharding::zero3, Sharding::fsdp, Sharding::hsdp}) {
    CHECK(broken({.pp = 2}, sharding) == Keys{});
    CHECK(broken(halves, sharding) == Keys{"strategy.sharding"});
  }
  CHECK(broken(chunks, Sharding::fsdp) == Keys{});
  CHECK(broken({.pp = 2}, Sharding::zero2) == Keys{});
  CHECK(broken(halves, Sharding::zero2) == Keys{});
  CHECK(broken(chunks, Sharding::zero2) == Keys{"strategy.sharding"});
  for (const Method method : {Method::zeropp, Method::qsdp})
    CHECK(dense_broken_by([&](Scenario& s) {
            s.strategy.method = method;
            s.strategy.sharding = Sharding::zero3;
            s.parallelism.pp = 2;
          }) == Keys{"parallelism.pp"});
  CHECK(broken_by([](Scenario& s) { s.strategy.sharding = Sharding::zero2; }) ==
        Keys{"strategy.sharding"});
  CHECK(dense_broken_by([](Scenario& s) {
          s.strategy.sharding = Sharding::hsdp;
          s.strategy.shard_group = 6;
        }) == Keys{"strategy.shard_group"});
}

TEST_CASE("a precision needs the peak it is rated by") {
  CHECK(broken_by([](Scenario& s) { s.training.precision = Precision::fp8; }) ==
        Keys{"training.precision"});
  CHECK(broken_by([](Scenario& s) { s.training.precision = Precision::fp32; }) ==
        Keys{"training.precision"});
  CHECK(broken_by([](Scenario& s) {
          s.training.precision = Precision::fp32;
          s.cluster.gpu.peak_tf32 = 494_TFLOPps;
        }).empty());
}

}  // namespace
}  // namespace scapesim::spec
