// SPDX-License-Identifier: Apache-2.0
// SCAPE: [M47], [M48] payloads and [M42], [M45] masks on the ring, every switch; [M43], [M44],
// [M50] to [M54] traffic of its passes.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "sim/strategy/selection.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using graph::CollectiveKind;
using graph::Stream;
using spec::Kernels;
using spec::Sharding;

namespace {

// Sums of a few exact numbers in double precision.
constexpr double kRounding = 1e-12;

using Change = std::function<void(spec::Strategy&)>;

spec::Scenario changed(double density, int ranks, const Change& change = {}) {
  spec::Scenario scenario = scape_scenario(llama_1_8b(), ranks, density);
  if (change) change(scenario.strategy);
  return scenario;
}

Program program_of(double density, int ranks, const Change& change = {}) {
  return Rig(changed(density, ranks, change)).program();
}

void sharded(spec::Strategy& s) { s.sharding = Sharding::zero1; }
void unfused(spec::Strategy& s) { s.kernels = Kernels::unfused; }
void blocking(spec::Strategy& s) { s.mask_wait = spec::MaskWait::blocking; }
void undelayed(spec::Strategy& s) {
  blocking(s);
  s.mask_delay = 0;
}
void global(spec::Strategy& s) { s.mask_partition = spec::MaskPartition::global; }
void two_buffers(spec::Strategy& s) { s.payload_buffers = spec::PayloadBuffers::two; }

/// Elements that even owners select, written out once more: floor(d numel) of every tensor's part.
double selected_by_hand(const Rig& rig, double density) {
  const auto ranks = static_cast<std::int64_t>(rig.ranks());
  const std::int64_t share = (rig.workload().parameters + ranks - 1) / ranks;
  std::int64_t begin = 0;
  std::int64_t sum = 0;
  for (const workload::Tensor& tensor : rig.context().tensors) {
    for (std::int64_t from = begin; from < begin + tensor.numel;) {
      const std::int64_t to = std::min(begin + tensor.numel, (from / share + 1) * share);
      const auto top = static_cast<std::int64_t>(density * static_cast<double>(to - from));
      sum += tensor.always_selected ? to - from : std::max<std::int64_t>(1, top);
      from = to;
    }
    begin += tensor.numel;
  }
  return static_cast<double>(sum);
}

double mask_bytes_by_hand(const Rig& rig) {
  return rig.ranks() * std::ceil(std::ceil(rig.parameters() / rig.ranks()) / 8);
}

const strategy::Call& only(const std::vector<strategy::Call>& calls) {
  REQUIRE(calls.size() == 1);
  return calls[0];
}

std::size_t place_of(const Program& program, std::string_view name) {
  for (std::size_t i = 0; i < program.operations.size(); ++i)
    if (program.operations[i].name == name) return i;
  FAIL("no operation " << name);
  return 0;
}

bool waits_for(const Program& program, std::size_t operation, std::size_t earlier, int steps_back) {
  for (const graph::Dependency& wait : program.operations[operation].waits_for)
    if (index(wait.op) == earlier && wait.steps_back == steps_back) return true;
  return false;
}

}  // namespace

TEST_CASE("[M47] SCAPE sends 8 d N (P-1)/P of payload and (P-1) times the largest part's bits") {
  for (const int ranks : {2, 3, 8, 64})
    for (const double density : {0.1, 0.01}) {
      const Rig rig(changed(density, ranks));
      const double payload = 8 * selected_by_hand(rig, density) * rig.sent_share();
      const double mask = (ranks - 1) * mask_bytes_by_hand(rig) / ranks;
      CHECK(bytes_sent(rig.program(), ranks) == Approx(payload + mask).epsilon(kRounding));
      // The ideal form, exact but for the norms: 125,440 of N elements, 6.9e-5.
      const double ideal = 8 * density * rig.parameters() * rig.sent_share();
      CHECK(payload == Approx(ideal).epsilon(7e-5 / density));
    }
}

TEST_CASE("[M48] with the distributed optimizer the payload goes twice: 16 d N (P-1)/P") {
  const Rig rig(changed(0.01, 64, sharded));
  const Program program = rig.program();
  CHECK(only(calls_named(program, "payload all-reduce")).bytes ==
        only(calls_named(program, "weight payload all-reduce")).bytes);
  const double payloads = 16 * selected_by_hand(rig, 0.01) * rig.sent_share();
  const double mask = mask_bytes_by_hand(rig) * rig.sent_share();
  CHECK(bytes_sent(program, 64) == Approx(payloads + mask).epsilon(kRounding));
}

TEST_CASE("[M48] leaving the second payload out removes that all-reduce and nothing else") {
  const Program with = program_of(0.01, 64, sharded);
  const Program without = program_of(0.01, 64, [](spec::Strategy& s) {
    sharded(s);
    s.second_payload = spec::SecondPayload::none;
  });
  CHECK(calls_named(without, "weight payload all-reduce").empty());
  CHECK(without.calls.size() + 1 == with.calls.size());
  // Then every rank updates all its parameters, as it does without the distributed optimizer.
  CHECK(traffic_of(without, "scatter and adams update") ==
        Approx(traffic_of(program_of(0.01, 64), "scatter and adams update")).epsilon(kRounding));
  CHECK(operations_named(without, "replica write-back").empty());
}

TEST_CASE("[M47] two buffers double the payload") {
  const Program one = program_of(0.01, 64);
  const Program two = program_of(0.01, 64, two_buffers);
  const strategy::Call payload = only(calls_named(one, "payload all-reduce"));
  CHECK(only(calls_named(two, "payload all-reduce")).bytes == payload.bytes);
  CHECK(only(calls_named(two, "gradient payload all-reduce")).bytes == payload.bytes);
  CHECK(bytes_sent(two, 64) - bytes_sent(one, 64) ==
        Approx(ring_bytes(payload, 64)).epsilon(1e-9));  // difference of larger sums
}

TEST_CASE("[M47] the payload takes the bytes of its type") {
  const auto payload = [](spec::PayloadDtype dtype) {
    return only(
               calls_named(program_of(0.01, 8, [&](spec::Strategy& s) { s.payload_dtype = dtype; }),
                           "payload all-reduce"))
        .bytes.si();
  };
  CHECK(payload(spec::PayloadDtype::bf16) == payload(spec::PayloadDtype::fp32) / 2);
  CHECK(payload(spec::PayloadDtype::fp8) == payload(spec::PayloadDtype::fp32) / 4);
}

TEST_CASE("[M42] byte masks are eight times packed ones") {
  const auto mask = [](spec::MaskFormat format) {
    return only(
               calls_named(program_of(0.01, 64, [&](spec::Strategy& s) { s.mask_format = format; }),
                           "mask all-gather"))
        .bytes.si();
  };
  // 28,612,520 elements per owner divide by eight.
  CHECK(mask(spec::MaskFormat::byte) == 8 * mask(spec::MaskFormat::packed));
}

TEST_CASE("[M42] whole-tensor owners pad the gathered mask; with the distributed optimizer none") {
  const auto mask = [](Sharding sharding, spec::Owners owners) {
    return only(calls_named(program_of(0.01, 64,
                                       [&](spec::Strategy& s) {
                                         s.sharding = sharding;
                                         s.owners = owners;
                                       }),
                            "mask all-gather"))
        .bytes.si();
  };
  CHECK(mask(Sharding::none, spec::Owners::tensor) == 64 * (32'000.0 * 2560 + 2560) / 8);
  CHECK(mask(Sharding::none, spec::Owners::even) == 1'831'201'280.0 / 8);
  CHECK(mask(Sharding::zero1, spec::Owners::tensor) == mask(Sharding::none, spec::Owners::even));
}

TEST_CASE("[M45] global masks are OR-ed by an all-reduce of N bits and fill the payload in") {
  for (const double overlap : {0.0, 0.5, 1.0}) {
    const Rig rig(changed(0.01, 64, [&](spec::Strategy& s) {
      global(s);
      s.mask_overlap = overlap;
    }));
    const Program program = rig.program();
    const strategy::Call mask = only(calls_named(program, "mask all-reduce"));
    CHECK(mask.kind == CollectiveKind::all_reduce);
    CHECK(mask.bytes.si() == rig.parameters() / 8);
    const double filled = strategy::union_density(0.01, 64, overlap);
    const double payload = only(calls_named(program, "payload all-reduce")).bytes.si();
    // Norms, 6.9e-5 of N, are sent whole.
    CHECK(payload == Approx(4 * filled * rig.parameters()).epsilon(7e-5 / filled));
  }
}

TEST_CASE("density 1 sends what dense sends, and the mask on top") {
  const Rig rig(changed(1, 64));
  const Program program = rig.program();
  CHECK(only(calls_named(program, "payload all-reduce")).bytes.si() == 4 * rig.parameters());
  const double dense = bytes_sent(Rig(scenario_of(llama_1_8b(), 64)).program(), 64);
  CHECK(bytes_sent(program, 64) > dense);
}

TEST_CASE("[M46] early in the warm-up the payload is nearly dense") {
  const auto payload = [](int at_step) {
    return only(calls_named(program_of(0.01, 8,
                                       [&](spec::Strategy& s) {
                                         s.density_warmup = 100;
                                         s.at_step = at_step;
                                       }),
                            "payload all-reduce"))
        .bytes.si();
  };
  CHECK(payload(0) == 4 * 1'831'201'280.0);
  CHECK(payload(50) < payload(0));
  CHECK(payload(50) == Approx(4 * 0.1 * 1'831'201'280.0).epsilon(7e-5 / 0.1));
  CHECK(payload(100) == payload(-1));
}

TEST_CASE("a single rank communicates nothing, with every switch, and still updates") {
  for (const Change& change :
       {Change(sharded), Change(unfused), Change(blocking), Change(undelayed), Change(global),
        Change(two_buffers), Change([](spec::Strategy& s) {
          s.offload = {true, false};
        }),
        Change([](spec::Strategy& s) {
          sharded(s);
          s.offload = {true, true};
        })}) {
    const Program program = program_of(0.01, 1, change);
    CHECK(program.calls.empty());
    CHECK(operations_named(program, "scatter and adams update").size() == 1);
  }
}

TEST_CASE("an overlapped mask has a communicator of its own and is waited for in the next step") {
  const Program program = program_of(0.01, 8);
  const std::size_t mask = place_of(program, "mask all-gather");
  CHECK(program.operations[mask].stream == Stream::mask_communication);
  CHECK(mask > place_of(program, "payload all-reduce"));
  CHECK(waits_for(program, place_of(program, "mask offsets"), mask, 1));
  CHECK_FALSE(waits_for(program, place_of(program, "scatter and adams update"), mask, 0));
}

TEST_CASE("a delayed mask is used by the next step's local pass, fused or not") {
  const Program program = program_of(0.01, 8, unfused);
  const std::size_t mask = place_of(program, "mask all-gather");
  CHECK(program.operations[mask].stream == Stream::mask_communication);
  CHECK(waits_for(program, place_of(program, "unfused local passes"), mask, 1));
}

TEST_CASE("a blocking mask is queued before the payload on the same communicator") {
  const Program program = program_of(0.01, 8, blocking);
  const std::size_t mask = place_of(program, "mask all-gather");
  CHECK(program.operations[mask].stream == Stream::communication);
  CHECK(mask < place_of(program, "payload all-reduce"));
}

TEST_CASE("a blocking mask of the step before holds up the forward pass") {
  const Rig rig(changed(0.01, 8, blocking));
  const auto method = strategy::method_of(spec::Method::scape).make(rig.context());
  Program program;
  program.operations.emplace_back();
  method->step_end(program, {0});
  const strategy::Waits waits = method->parameters_needed();
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].steps_back == 1);
  CHECK(program.operations[index(waits[0].op)].name == "mask all-gather");
}

TEST_CASE("[M52] a mask of the same step is made and gathered before the payload is") {
  for (const Change& more : {Change(undelayed), Change([](spec::Strategy& s) {
                               undelayed(s);
                               unfused(s);
                             })}) {
    const Program program = program_of(0.01, 8, more);
    const std::size_t mask = place_of(program, "mask all-gather");
    const std::size_t payload = place_of(program, "payload all-reduce");
    CHECK(mask < payload);
    bool gathered_after_mask = false;
    for (std::size_t i = mask + 1; i < payload; ++i)
      gathered_after_mask = gathered_after_mask || waits_for(program, i, mask, 0);
    CHECK(gathered_after_mask);
  }
}

TEST_CASE("[M51] the fused local pass reads m, g, r and the mask, and writes r and the payload") {
  const Rig rig(changed(0.1, 8));
  const double sent = selected_by_hand(rig, 0.1) / rig.parameters();
  CHECK(traffic_of(rig.program(), "accumulate, residual, gather") ==
        Approx(rig.parameters() * (3 * 4 + 1.0 / 8 + 4 + 4 * sent)).epsilon(kRounding));
  // 16.5 and 16.2 bytes per element in fp32, 14.3 with gradients and payload in bf16.
  const auto per_element = [](spec::Scenario scenario) {
    const Rig other(std::move(scenario));
    return traffic_of(other.program(), "accumulate, residual, gather") / other.parameters();
  };
  CHECK(per_element(changed(0.1, 8)) == Approx(16.5).margin(0.05));
  CHECK(per_element(changed(0.01, 8)) == Approx(16.2).margin(0.05));
  spec::Scenario bf16 = changed(0.1, 8);
  bf16.training.gradient_dtype = spec::GradientDtype::bf16;
  bf16.strategy.payload_dtype = spec::PayloadDtype::bf16;
  CHECK(per_element(bf16) == Approx(14.3).margin(0.05));
}

TEST_CASE("[M43] an owner's mask takes three reads of its scores, a fourth and the bits written") {
  for (const int ranks : {1, 8, 64}) {
    const Rig rig(changed(0.01, ranks));
    const double owned = std::ceil(rig.parameters() / ranks);
    CHECK(traffic_of(rig.program(), "top-k threshold and mask") ==
          Approx(owned * (4 * 4 + 1.0 / 8)).epsilon(kRounding));
  }
  const Rig everybody(changed(0.01, 64, global));
  CHECK(traffic_of(everybody.program(), "top-k threshold and mask") ==
        Approx(everybody.parameters() * (4 * 4 + 1.0 / 8)).epsilon(kRounding));
}

TEST_CASE("[M44] offsets of the payload take one scan of the mask that came") {
  const Rig rig(changed(0.01, 8));
  CHECK(traffic_of(rig.program(), "mask offsets") == rig.parameters() / 8);
}

TEST_CASE("[M53] the fused update of all weights moves 18.1 to 18.5 bytes per element") {
  const Rig rig(changed(0.1, 8));
  const double sent = selected_by_hand(rig, 0.1) / rig.parameters();
  // Weight and moment in and out, bf16 copy, mask, payload.
  CHECK(traffic_of(rig.program(), "scatter and adams update") ==
        Approx(rig.parameters() * (16 + 2 + 1.0 / 8 + 4 * sent)).epsilon(kRounding));
  const auto per_element = [](double density) {
    const Rig other(
        changed(density, 8, [](spec::Strategy& s) { s.payload_dtype = spec::PayloadDtype::bf16; }));
    return traffic_of(other.program(), "scatter and adams update") / other.parameters();
  };
  CHECK(per_element(0.1) == Approx(18.3).margin(0.05));
  CHECK(per_element(0.01) == Approx(18.1).margin(0.05));
}

TEST_CASE("[M54] with the distributed optimizer an owner updates N/P and writes back all N") {
  const Rig rig(changed(0.1, 8, sharded));
  const double sent = selected_by_hand(rig, 0.1) / rig.parameters();
  const double shard = std::ceil(rig.parameters() / 8);
  CHECK(traffic_of(rig.program(), "scatter and adams update") ==
        Approx(shard * (16 + 2 + 1.0 / 8 + 4 * sent)).epsilon(kRounding));
  // Replica in and out, bf16 copy, mask, updated weights.
  CHECK(traffic_of(rig.program(), "replica write-back") ==
        Approx(rig.parameters() * (8 + 2 + 1.0 / 8 + 4 * sent)).epsilon(kRounding));
  // The local pass covers all N on every rank: each of them has values at every position.
  CHECK(traffic_of(rig.program(), "accumulate, residual, gather") ==
        Approx(traffic_of(program_of(0.1, 8), "accumulate, residual, gather")).epsilon(kRounding));
}

TEST_CASE("[M50] the released passes move 413 bytes per parameter, sharded 45 and 413/P") {
  const double upkeep = 12;  // scaling and zeroing of the gradients, as in dense training
  const Rig rig(changed(0.01, 8, unfused));
  CHECK(optimizer_traffic(rig.program()) ==
        Approx((413 + upkeep) * rig.parameters()).epsilon(kRounding));
  const Rig shard(changed(0.01, 8, [](spec::Strategy& s) {
    unfused(s);
    sharded(s);
  }));
  CHECK(optimizer_traffic(shard.program()) ==
        Approx((45 + 413.0 / 8 + upkeep) * shard.parameters()).epsilon(kRounding));
}

TEST_CASE("[M52] a mask of the same step costs one more trip of the moment through memory") {
  const Rig rig(changed(0.1, 8, undelayed));
  const Program program = rig.program();
  const double sent = selected_by_hand(rig, 0.1) / rig.parameters();
  // m, g, r in, the new moment out; then moment and mask in, r and payload out.
  CHECK(traffic_of(program, "accumulate") == 16 * rig.parameters());
  CHECK(traffic_of(program, "residual, gather") ==
        Approx(rig.parameters() * (8 + 1.0 / 8 + 4 * sent)).epsilon(kRounding));
}
