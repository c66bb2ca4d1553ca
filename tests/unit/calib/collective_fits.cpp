// SPDX-License-Identifier: Apache-2.0
// Collectives made up from known modes, and what the fit makes of them.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "calib/collectives.hpp"
#include "sim/base/random.hpp"

namespace {

using namespace scapesim;
using calib::TimedCall;
using cost::Profile;
using cost::Scope;
using graph::Algorithm;
using graph::CollectiveKind;
using graph::Protocol;

constexpr cost::LineRates kRates{.node_link = BytesPerSecond(450e9), .nic = BytesPerSecond(50e9)};

Profile start(bool nvls_machine) {
  Profile profile;
  const auto put = [&](const char* key, double value) {
    profile.numbers[key] = {value, value, value, cost::Factor::network, {}};
  };
  put("network.efficiency", 0.9);
  put("network.node_efficiency", 0.8);
  if (nvls_machine) put("network.nvls_ranks", 5);
  return profile;
}

/// The truth of a test: what one mode says a call takes.
struct Truth {
  Algorithm algorithm;
  double base, node_hop, hop, node_share, share;
};

double time_of(const Truth& truth, const TimedCall& call) {
  cost::NetworkTerms terms;
  terms.base_latency = Seconds(truth.base);
  terms.node_hop_latency = Seconds(truth.node_hop);
  terms.hop_latency = Seconds(truth.hop);
  terms.node_efficiency = truth.node_share;
  terms.efficiency = truth.share;
  return cost::time_alone(cost::traffic_of(truth.algorithm, call.kind, call.layout).value(), terms,
                          call.size, call.rates)
      .si();
}

/// Small calls run `small`, those of 128 KiB and up `bulk`; noise of 2 %, one call in 20 doubled.
std::vector<TimedCall> sweep(CollectiveKind kind, const cost::Layout& layout, const Truth& small,
                             const Truth& bulk, Random& random) {
  std::vector<TimedCall> calls;
  for (double size = 1024; size < 8e9; size *= 2) {
    TimedCall call{.kind = kind,
                   .layout = layout,
                   .rates = kRates,
                   .size = Bytes(size),
                   .time = {},
                   .algorithm = {}};
    const double time = time_of(size < 131072 ? small : bulk, call);
    const double outlier = random.uniform(0, 1) < 0.05 ? 2 : 1;
    call.time = Seconds(time * outlier * (1 + random.uniform(-0.02, 0.02)));
    calls.push_back(call);
  }
  return calls;
}

Profile fitted(Profile profile, const std::vector<TimedCall>& calls) {
  std::string report;
  std::vector<std::string> gaps;
  calib::fit_modes(profile, calls, {}, report, gaps);
  return profile;
}

bool holds(const cost::Number& number, double truth) {
  return number.low <= truth && truth <= number.high;
}
bool holds(const cost::Curve& curve, double truth) {
  const double value = curve.points.back()[1];
  return value * curve.low_factor <= truth && truth <= value * curve.high_factor;
}

/// Seeds of 100 for which the fit's ranges hold the truth.
int hits(const std::function<bool(Random&)>& one) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    count += one(random);
  }
  return count;
}

}  // namespace

TEST_CASE("[M123] two nodes run trees, more run rings; NVLS where the node has ranks enough") {
  const auto of = [](CollectiveKind kind, const cost::Layout& layout, std::optional<int> nvls) {
    return calib::algorithms_of(kind, layout, nvls);
  };
  using enum CollectiveKind;
  CHECK(of(all_reduce, {8, 1, 8}, 5).bulk == Algorithm::nvls);
  CHECK(of(all_reduce, {4, 1, 4}, 5).bulk == Algorithm::ring);
  CHECK(of(all_reduce, {8, 1, 8}, std::nullopt).bulk == Algorithm::ring);
  CHECK(of(all_reduce, {16, 2, 8}, 5).bulk == Algorithm::nvls_tree);
  CHECK(of(all_reduce, {8, 2, 4}, 5).bulk == Algorithm::tree);
  CHECK(of(all_reduce, {32, 4, 8}, 5).bulk == Algorithm::ring);
  CHECK(of(all_reduce, {32, 4, 8}, 5).small == Algorithm::tree);
  CHECK(of(all_gather, {16, 2, 8}, 5).bulk == Algorithm::ring);
  CHECK(of(all_to_all, {16, 2, 8}, 5).bulk == Algorithm::pairwise);
}

TEST_CASE(
    "[M124] the share of the switch and of the wire lie in their ranges for 90 of 100 seeds") {
  const Truth small{Algorithm::ring, 8e-6, 0.5e-6, 0, 0.2, 1};
  const Truth nvls{Algorithm::nvls, 8e-6, 12e-6, 0, 0.68, 1};
  CHECK(hits([&](Random& random) {
          const Profile profile = fitted(
              start(true), sweep(CollectiveKind::all_reduce, {8, 1, 8}, small, nvls, random));
          return holds(profile.curve("network.inside.nvls_simple.efficiency"), 0.68);
        }) >= 90);
  const Truth tree_small{Algorithm::tree, 8e-6, 0, 4e-6, 1, 0.2};
  const Truth tree{Algorithm::tree, 8e-6, 0, 15e-6, 1, 0.85};
  CHECK(hits([&](Random& random) {
          const Profile profile = fitted(
              start(false), sweep(CollectiveKind::all_reduce, {2, 2, 1}, tree_small, tree, random));
          return holds(profile.curve("network.between.tree_simple.efficiency"), 0.85);
        }) >= 90);
}

TEST_CASE(
    "[M124] several numbers of ranks tell a step's latency from the bytes for 90 of 100 seeds") {
  const Truth small{Algorithm::ring, 10e-6, 1e-6, 0, 0.2, 1};
  const Truth ring{Algorithm::ring, 10e-6, 4e-6, 0, 0.8, 1};
  const auto of_three = [&](Random& random) {
    std::vector<TimedCall> calls;
    for (const int ranks : {2, 4, 8}) {
      const auto one = sweep(CollectiveKind::all_reduce, {ranks, 1, ranks}, small, ring, random);
      calls.insert(calls.end(), one.begin(), one.end());
    }
    return fitted(start(false), calls);
  };
  CHECK(hits([&](Random& random) {
          return holds(of_three(random).curve("network.inside.ring_simple.efficiency"), 0.8);
        }) >= 90);
  CHECK(hits([&](Random& random) {
          return holds(of_three(random).numbers.at("network.inside.ring_simple.node_hop_latency_s"),
                       4e-6);
        }) >= 90);
}

TEST_CASE("[M125] a single large call moves the level of a known mode, and not its latency") {
  const Truth small{Algorithm::ring, 8e-6, 0.5e-6, 0, 0.2, 1};
  const Truth nvls{Algorithm::nvls, 8e-6, 12e-6, 0, 0.68, 1};
  Random random(1);
  const Profile base =
      fitted(start(true), sweep(CollectiveKind::all_reduce, {8, 1, 8}, small, nvls, random));
  TimedCall call{.kind = CollectiveKind::all_reduce,
                 .layout = {8, 1, 8},
                 .rates = kRates,
                 .size = Bytes(8e9),
                 .time = {},
                 .algorithm = {}};
  const Truth slower{Algorithm::nvls, 8e-6, 12e-6, 0, 0.6, 1};
  call.time = Seconds(time_of(slower, call));
  const Profile moved = fitted(base, {call});
  CHECK(calib::predicted_alone(moved, call) / call.time == Approx(1).epsilon(1e-9));
  const char* latency = "network.inside.nvls_simple.node_hop_latency_s";
  CHECK(moved.number(latency) == base.number(latency));
}

TEST_CASE("[M124] faster than the links allow is held at them and named") {
  const Truth tree{Algorithm::tree, 8e-6, 0, 15e-6, 1, 0.9};
  Random random(1);
  std::vector<TimedCall> calls = sweep(CollectiveKind::all_reduce, {2, 2, 1}, tree, tree, random);
  for (TimedCall& call : calls) call.rates.nic = BytesPerSecond(25e9);  // half of what carried them
  Profile profile = start(false);
  std::string report;
  std::vector<std::string> gaps;
  calib::fit_modes(profile, calls, {}, report, gaps);
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].find("faster than the line rate") != std::string::npos);
  CHECK(profile.curve("network.between.tree_simple.efficiency").points.back()[1] == 1);
}
