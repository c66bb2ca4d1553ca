// SPDX-License-Identifier: Apache-2.0
// Local passes and memory of the methods, counted by hand on a Llama-1.8B of P ranks.
#include <catch2/catch.hpp>

#include "sim/strategy/selection.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::Method;

namespace {

constexpr int kRanks = 8;

spec::Scenario scenario_with(Method method) {
  spec::Scenario s = scenario_of(llama_1_8b(), kRanks);
  s.strategy.method = method;
  s.strategy.sharding = spec::rule_of(method).shardings.front();
  s.strategy.density = spec::rule_of(method).density;
  return s;
}

/// Share of 32-byte sectors of fp32 that a random mask touches.
double touched(double density) { return 1 - std::pow(1 - density, 8); }

/// Elements of norms.
double vectors_of(const Rig& rig) {
  double sum = 0;
  for (const workload::Tensor& tensor : rig.context().tensors)
    if (tensor.always_selected) sum += static_cast<double>(tensor.numel);
  return sum;
}

/// Bytes per parameter of a pass.
double per_parameter(const Rig& rig, const Program& program, std::string_view name) {
  return traffic_of(program, name) / rig.parameters();
}

}  // namespace

TEST_CASE("[M301] [M302] top-k reads its residual five times and adds every rank's list") {
  const Rig rig(scenario_with(Method::topk));
  const Program program = rig.program();
  CHECK(per_parameter(rig, program, "residual and gradient") == Approx(12));
  CHECK(per_parameter(rig, program, "top-k threshold") == Approx(12));
  const double d = 0.01;
  CHECK(per_parameter(rig, program, "top-k compaction") ==
        Approx(4 + 8 * d + 4 * touched(d)).epsilon(1e-2));
  CHECK(per_parameter(rig, program, "sparse sum") ==
        Approx(4 + kRanks * (8 * d + 8 * touched(d))).epsilon(1e-2));
  CHECK(rig.memory().strategy.si() == 4 * rig.parameters());  // [M304]
}

TEST_CASE("[M303] [M304] an OR of masks sends the values of the union, without indices") {
  spec::Scenario s = scenario_with(Method::topk);
  s.strategy.exchange = spec::Exchange::mask;
  for (const double overlap : {0.0, 0.16, 1.0}) {
    s.strategy.mask_overlap = overlap;
    const Rig rig(s);
    const Program program = rig.program();
    const double filled = strategy::union_density(0.01, kRanks, overlap);
    CHECK(calls_named(program, "payload all-reduce").at(0).bytes.si() ==
          Approx(4 * filled * rig.parameters()).epsilon(0.01));  // norms go whole
    CHECK(calls_named(program, "mask all-reduce").at(0).bytes.si() ==
          std::ceil(rig.parameters() / 8));
    CHECK(rig.memory().step_end.si() ==
          Approx((4 * filled + 0.125) * rig.parameters()).epsilon(0.01));
  }
}

TEST_CASE("[M305] [M306] [M307] DGC keeps two fp32 buffers and updates by plain SGD") {
  const Rig rig(scenario_with(Method::dgc));
  const Program program = rig.program();
  CHECK(traffic_of(program, "momentum correction") ==
        Approx(20 * (rig.parameters() - vectors_of(rig))));
  CHECK(traffic_of(program, "sampled threshold") ==
        Approx(0.12 * (rig.parameters() - vectors_of(rig))));
  CHECK(per_parameter(rig, program, "sgd update") == Approx(14));
  CHECK(calls_named(program, "uncompressed gradient all-reduce").at(0).bytes.si() ==
        4 * vectors_of(rig));
  CHECK(rig.memory().strategy.si() == 8 * rig.parameters());
  CHECK(rig.memory().optimizer.si() == 4 * rig.parameters());
}

TEST_CASE("[M308] gradients cast for the network are read and written on both ends") {
  spec::Scenario s = scenario_with(Method::dense);
  const Rig plain(s);
  s.strategy.reduce_dtype = spec::ReduceDtype::bf16;
  const Rig rig(s);
  const Program program = rig.program();
  CHECK(bytes_sent(program, kRanks) == Approx(bytes_sent(plain.program(), kRanks) / 2));
  CHECK(per_parameter(rig, program, "cast of gradients") == Approx(6));
  CHECK(per_parameter(rig, program, "cast of reduced gradients") == Approx(6));
  s.strategy.reduce_dtype = spec::ReduceDtype::fp8;
  CHECK(per_parameter(rig, Rig(s).program(), "cast of gradients") == Approx(9));
  s.strategy.reduce_dtype = spec::ReduceDtype::fp32;
  CHECK(per_parameter(rig, Rig(s).program(), "cast of gradients") == 0);
}

TEST_CASE("[M310] [M314] ZeRO++ adds the second copy and codes of the largest layer") {
  spec::Scenario s = scenario_with(Method::zeropp);
  s.cluster.gpus_per_node = 4;
  s.cluster.nodes = 2;
  const Rig rig(s);
  spec::Scenario zero3 = s;
  zero3.strategy.method = Method::dense;
  const Rig base(zero3);
  double largest = 0;
  for (const workload::Layer& layer : rig.workload().layers)
    largest = std::max(largest, static_cast<double>(workload::parameters_of(layer)));
  const double more = rig.memory().strategy.si() - base.memory().strategy.si();
  CHECK(more == Approx(2 * rig.parameters() / 4 + largest + largest));
  s.strategy.zeropp = {.weights = false, .secondary = false, .gradients = false};
  CHECK(Rig(s).memory().strategy == base.memory().strategy);
}

TEST_CASE("[M317] QSDP adds the codes of the largest layer to sharded training") {
  const Rig rig(scenario_with(Method::qsdp));
  spec::Scenario fsdp = scenario_with(Method::qsdp);
  fsdp.strategy.method = Method::dense;
  double largest = 0;
  for (const workload::Layer& layer : rig.workload().layers)
    largest = std::max(largest, static_cast<double>(workload::parameters_of(layer)));
  CHECK(rig.memory().strategy.si() - Rig(fsdp).memory().strategy.si() == Approx(3 * largest));
}

TEST_CASE("[M320] [M321] [M322] DeMo sends k of a chunk's coefficients and keeps one momentum") {
  const Rig rig(scenario_with(Method::demo));
  const Program program = rig.program();
  // All sizes of the model are multiples of 64: 32 of 4096; norms 32 of 64.
  const double matrices = rig.parameters() - vectors_of(rig);
  const double sent = 12 * (matrices / 128 + vectors_of(rig) / 2);
  CHECK(traffic_of(program, "momentum") == 12 * rig.parameters());
  CHECK(traffic_of(program, "cosine transform and top-k") == 4 * rig.parameters() + sent);
  CHECK(traffic_of(program, "momentum less what is sent") == 8 * rig.parameters() + sent);
  CHECK(traffic_of(program, "inverse transform and sign update") ==
        10 * rig.parameters() + kRanks * sent);
  CHECK(bytes_sent(program, kRanks) == Approx(sent * (kRanks - 1)));
  CHECK(rig.memory().strategy.si() == 4 * rig.parameters());
  CHECK(rig.memory().optimizer.si() == 4 * rig.parameters());
}

TEST_CASE("[M320] a dimension that 64 does not divide is cut by its largest divisor below") {
  spec::Scenario s = scenario_of(gpt({1, 100, 2, 30, 101}), 2);
  s.strategy.method = Method::demo;
  const Rig rig(s);
  double expected = 0;
  for (const workload::Tensor& tensor : rig.context().tensors) {
    const auto side = [](std::int64_t extent) {
      std::int64_t best = 1;
      for (std::int64_t i = 1; i <= std::min<std::int64_t>(64, extent); ++i)
        if (extent % i == 0) best = i;
      return best;
    };
    const std::int64_t rows = std::max<std::int64_t>(1, tensor.rows);
    const std::int64_t size =
        side(tensor.numel / rows) * (tensor.rows == 0 ? 1 : side(tensor.rows));
    expected += static_cast<double>(tensor.numel / size * std::min<std::int64_t>(32, size));
  }
  CHECK(bytes_sent(rig.program(), 2) == Approx(12 * expected));
}

TEST_CASE(
    "[M325] [M326] [M327] Ok-Topk selects by threshold and pays an exact one every 32 steps") {
  const Rig rig(scenario_with(Method::oktopk));
  const Program program = rig.program();
  const double d = 0.01;
  CHECK(per_parameter(rig, program, "residual and gradient") == 12);
  CHECK(per_parameter(rig, program, "exact threshold, its share") == 12.0 / 32);
  CHECK(per_parameter(rig, program, "selection by threshold") == Approx(4 + 8 * d));
  CHECK(per_parameter(rig, program, "sum of a region") == Approx(8 * d + 4.0 / kRanks));
  CHECK(per_parameter(rig, program, "sum and residual") == Approx(4 + 8 * d + 12 * touched(d)));
  CHECK(rig.memory().strategy.si() == 4 * rig.parameters());
  CHECK(rig.memory().step_end.si() == Approx(32 * d * rig.parameters()));
}

TEST_CASE("[M330] [M331] [M332] 1-bit Adam keeps errors of its signs and of its part of the sum") {
  spec::Scenario s = scenario_with(Method::onebit_adam);
  const Rig rig(s);
  const Program program = rig.program();
  const double n = rig.parameters();
  CHECK(traffic_of(program, "momentum") == 12 * n);
  CHECK(traffic_of(program, "scale, signs and error") == Approx(n * (20 + 0.125)).epsilon(1e-5));
  CHECK(traffic_of(program, "momentum from signs") == Approx(n * (4 + 0.125)).epsilon(1e-5));
  CHECK(traffic_of(program, "adam update") == 18 * n);
  CHECK(calls_named(program, "sign all-to-all").size() == rig.context().tensors.size());
  CHECK(rig.memory().optimizer.si() == 12 * n);
  CHECK(rig.memory().strategy.si() == Approx(4 * n * (1 + 1.0 / kRanks)).epsilon(1e-5));
  s.strategy.dense_steps = 100;
  s.strategy.at_step = 99;
  CHECK(bytes_sent(Rig(s).program(), kRanks) == Approx(8 * n * rig.sent_share()));
  s.strategy.at_step = 100;
  CHECK(bytes_sent(Rig(s).program(), kRanks) == bytes_sent(program, kRanks));
}

TEST_CASE("[M335] [M336] [M337] PowerSGD reads a matrix three times and writes it twice") {
  spec::Scenario s = scenario_with(Method::powersgd);
  const Rig rig(s);
  const Program program = rig.program();
  double left = 0, right = 0, whole = 0, factored = 0;
  for (const workload::Tensor& tensor : rig.context().tensors) {
    const auto n = static_cast<double>(tensor.numel), rows = static_cast<double>(tensor.rows);
    if (tensor.rows == 0) {
      whole += n;
      continue;
    }
    left += 4 * rows, right += 4 * n / rows, factored += n;
  }
  CHECK(whole == vectors_of(rig));
  CHECK(traffic_of(program, "gradient and error") == 12 * factored);
  CHECK(traffic_of(program, "left factors") == 4 * (factored + left));
  CHECK(traffic_of(program, "orthogonal left factors") == 4 * left * 5);
  CHECK(traffic_of(program, "right factors") == 4 * (factored + left + right));
  CHECK(traffic_of(program, "gradients from factors, error") == 12 * factored + 4 * (left + right));
  CHECK(rig.memory().strategy.si() == 4 * (factored + left + right));
}

TEST_CASE("[M340] [M341] [M342] a round is H local steps and one outer step") {
  spec::Scenario s = scenario_with(Method::local_sgd);
  s.strategy.local_steps = 10;
  s.training.optimizer = spec::Optimizer::adamw;
  const Rig rig(s);
  const Program program = rig.program();
  const double n = rig.parameters();
  CHECK(traffic_of(program, "adamw update") == 10 * 30 * n);
  CHECK(traffic_of(program, "difference to the common parameters") == 12 * n);
  CHECK(traffic_of(program, "outer update") == 26 * n);
  CHECK(bytes_sent(program, kRanks) == Approx(8 * n * rig.sent_share()));
  CHECK(rig.memory().strategy.si() == 8 * n);
  s.strategy.outer_wait = spec::OuterWait::overlapped;
  CHECK(Rig(s).memory().strategy.si() == 12 * n);
  s.strategy.payload_dtype = spec::PayloadDtype::bf16;
  CHECK(bytes_sent(Rig(s).program(), kRanks) == Approx(4 * n * rig.sent_share()));
}
