// SPDX-License-Identifier: Apache-2.0
// [M427] Activations in host memory: what copies cost when they are slower than layers, what they
// move, and what is left on the device.
#include "sim/plan/activation_offload.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/plan/memory.hpp"
#include "tests/support/prediction.hpp"
#include "tests/support/random_scenario.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

constexpr int kLayers = 24;
constexpr int kOffloaded = 16;

spec::Scenario offloading(std::optional<int> layers, double link = 1e12) {
  spec::Scenario s = scenario_of(llama_1_8b(), 1);
  s.training.activation_offload = true;
  s.training.offload_layers = layers;
  s.cluster.host_link.bandwidth = BytesPerSecond(link);
  return s;
}

spec::Scenario without(spec::Scenario s) {
  s.training.activation_offload = false;
  s.training.offload_layers.reset();
  return s;
}

/// Duration of the first operation whose name begins so.
double time_of(const Prediction& prediction, std::string_view prefix) {
  for (const graph::Operation& operation : prediction.graph.classes.at(0).operations)
    if (operation.name.starts_with(prefix)) return operation.duration.si();
  throw InternalError("no operation " + std::string(prefix));
}

struct Copied {
  int copies = 0;
  double bytes = 0;
};
Copied copied(const Prediction& prediction, graph::Stream stream) {
  Copied sum;
  for (const graph::RankClass& stage : prediction.graph.classes)
    for (const graph::Operation& operation : stage.operations)
      if (operation.stream == stream && operation.work == graph::Work::transfer)
        ++sum.copies, sum.bytes += operation.bytes.si();
  return sum;
}

Bytes kept_by_layer(const spec::Scenario& s) {
  return workload::workload_of(s.model, s.training, s.parallelism).layers.at(1).kept;
}

plan::MemoryNeed need_of(const spec::Scenario& s) {
  return plan::memory_need(s, workload::workload_of(s.model, s.training, s.parallelism),
                           round_profile());
}

}  // namespace

TEST_CASE("[M427] slow copies add what they take longer than a layer, for all layers but two") {
  for (const double link : {1e9, 5e9, 20e9, 1e12}) {
    const spec::Scenario s = offloading(kOffloaded, link);
    const Prediction prediction = prediction_of(s, round_profile());
    const double forward = time_of(prediction, "forward: layer 0");
    const double backward = time_of(prediction, "backward: layer 0");
    const double copy = kept_by_layer(s).si() / std::min(link, 100e9);
    // The eight layers that stay and the head are long enough for the first two copies in.
    const double cover = 2 * copy < (kLayers - kOffloaded) * (forward + backward) ? 0 : 1;
    if (cover > 0) continue;
    const double waits = (kOffloaded - 2) * (std::max(copy - forward, 0.0) +  //
                                             std::max(copy - backward, 0.0));
    INFO("link " << link << " copy " << copy << " layer " << forward << " " << backward);
    CHECK(run_of(prediction).step_time.si() - step_of(without(s), round_profile()) ==
          Approx(waits).epsilon(1e-6).margin(1e-9));
    CHECK(run_of(prediction).breakdown.copy.si() == Approx(waits).epsilon(1e-6).margin(1e-9));
  }
}

TEST_CASE("[M427] every offloaded layer is copied out and in once per micro-batch") {
  spec::Scenario s = offloading(kOffloaded);
  s.training.global_batch = 3;
  const Prediction prediction = prediction_of(s, round_profile());
  for (const graph::Stream stream : {graph::Stream::copy_out, graph::Stream::copy_in}) {
    CHECK(copied(prediction, stream).copies == 3 * kOffloaded);
    CHECK(copied(prediction, stream).bytes ==
          Approx(3 * kOffloaded * kept_by_layer(s).si()).epsilon(1e-12));
  }
  CHECK(copied(prediction_of(without(s), round_profile()), graph::Stream::copy_out).copies == 0);
}

TEST_CASE("[M427] the device keeps the other layers and two of those, the host all of those") {
  for (const int layers : {0, 1, 2, 10, kLayers}) {
    const spec::Scenario s = offloading(layers);
    const plan::MemoryNeed with = need_of(s), all = need_of(without(s));
    const double kept = kept_by_layer(s).si();
    CHECK((all.activations - with.activations).si() == Approx(std::max(0, layers - 2) * kept));
    CHECK(with.host.si() == Approx(layers * kept));
    CHECK(all.host == Bytes(0));
  }
}

TEST_CASE("[M427] a pipeline's first stage holds the layers of p micro-batches in host memory") {
  spec::Scenario s = offloading(4);
  s.parallelism.pp = 4;
  s.cluster.gpus = s.cluster.nodes = 4;
  s.training.global_batch = 8;
  const workload::Workload work = workload::workload_of(s.model, s.training, s.parallelism);
  const double kept = work.layers.at(1).kept.si();
  for (const int stage : {0, 3})
    CHECK(plan::stage_memory(s, work, round_profile(), stage).host.si() ==
          Approx((4 - stage) * 4 * kept));
  const double all = plan::stage_memory(without(s), work, round_profile(), 0).activations.si();
  const double with = plan::stage_memory(s, work, round_profile(), 0).activations.si();
  CHECK(all - with == Approx((4 * 4 - 2) * kept));
}

TEST_CASE("[M427] more offload never takes more memory on the device, nor a shorter step") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    spec::Scenario s = random_scenario(seed);
    if (s.strategy.method == spec::Method::local_sgd) continue;
    s.training.activation_offload = true;
    s.training.global_batch *= 2;
    s.cluster.host_memory = Bytes(1e15);
    const cost::Profile profile = random_profile(seed);
    Bytes last = need_of(without(s)).activations;
    double shortest = 0;
    const Prediction without_copies = prediction_of(without(s), profile);
    if (const auto* run = std::get_if<result::Run>(&without_copies.outcome))
      shortest = run->step_time.si();
    for (int layers = 0; layers <= s.model.layers; ++layers) {
      s.training.offload_layers = layers;
      const Bytes now = need_of(s).activations;
      CHECK(now <= last * (1 + 1e-12));
      last = now;
      if (layers != s.model.layers || shortest == 0) continue;
      ++compared;
      CHECK(step_of(s, profile) >= shortest * (1 - 1e-9));
    }
  }
  CHECK(compared > 10);
}

TEST_CASE(
    "[M427] a faster link to the host never lengthens a step; NVLink-C2C hides what PCIe "
    "does not") {
  double last = 1e9;
  for (const double link : {32e9, 64e9, 450e9}) {
    const spec::Scenario s = offloading(std::nullopt, link);
    cost::Profile profile = round_profile();
    set(profile, "copy.h2d_Bps", 0.9 * link), set(profile, "copy.d2h_Bps", 0.9 * link);
    const double step = step_of(s, profile);
    CHECK(step <= last);
    last = step;
  }
  CHECK(last == Approx(step_of(without(offloading(std::nullopt)), round_profile())).epsilon(0.05));
}

TEST_CASE("[M427] what hosts cannot hold is infeasible, and says which key to lower") {
  spec::Scenario s = offloading(std::nullopt);
  s.cluster.host_memory = Bytes(1e9);
  const Prediction prediction = prediction_of(s, round_profile());
  const auto* no = std::get_if<result::Infeasible>(&prediction.outcome);
  REQUIRE(no != nullptr);
  CHECK(no->reason.find("host memory") != std::string::npos);
  CHECK(no->hint.find("training.offload_layers") != std::string::npos);
}
