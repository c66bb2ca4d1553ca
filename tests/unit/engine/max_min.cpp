// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/max_min.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.hpp"

using namespace scapesim;

namespace {

std::vector<BytesPerSecond> rates_of(const std::vector<graph::Resource>& resources,
                                     const std::vector<graph::Phase>& phases) {
  std::vector<const graph::Phase*> pointers;
  for (const graph::Phase& phase : phases) pointers.push_back(&phase);
  std::vector<BytesPerSecond> rates(phases.size());
  engine::MaxMin(resources).solve(pointers, rates);
  return rates;
}

graph::Phase phase_on(std::vector<graph::Load> loads, double cap = 0) {
  graph::Phase phase;
  phase.rate_cap = BytesPerSecond(cap);
  phase.loads = std::move(loads);
  return phase;
}

constexpr graph::ResourceId kFirst{0};
constexpr graph::ResourceId kSecond{1};
constexpr BytesPerSecond operator""_Bps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v));
}

}  // namespace

TEST_CASE("a phase alone gets its tightest resource divided by its flows there") {
  const std::vector<graph::Resource> resources = {{"a", 12_Bps}, {"b", 10_Bps}};
  REQUIRE(rates_of(resources, {phase_on({{kFirst, 4}, {kSecond, 1}})})[0] == 3_Bps);
  REQUIRE(rates_of(resources, {phase_on({{kFirst, 4}}, 2)})[0] == 2_Bps);
  REQUIRE(std::isinf(rates_of(resources, {phase_on({})})[0].si()));
}

TEST_CASE("equal phases share equally, and what a capped one leaves goes to the others") {
  const std::vector<graph::Resource> resources = {{"a", 12_Bps}};
  const auto equal = rates_of(resources, {phase_on({{kFirst, 1}}), phase_on({{kFirst, 1}})});
  REQUIRE(equal == std::vector{6_Bps, 6_Bps});
  const auto capped = rates_of(resources, {phase_on({{kFirst, 1}}, 2), phase_on({{kFirst, 1}})});
  REQUIRE(capped == std::vector{2_Bps, 10_Bps});
}

TEST_CASE("the three flows on two links of Bertsekas and Gallager get 1/2, 1/2 and the rest") {
  const std::vector<graph::Resource> resources = {{"a", 1_Bps}, {"b", 2_Bps}};
  const auto rates = rates_of(
      resources,
      {phase_on({{kFirst, 1}}), phase_on({{kFirst, 1}, {kSecond, 1}}), phase_on({{kSecond, 1}})});
  REQUIRE(rates == std::vector{BytesPerSecond(0.5), BytesPerSecond(0.5), BytesPerSecond(1.5)});
}

TEST_CASE("a phase on no resource of the others has no share in them") {
  const std::vector<graph::Resource> resources = {{"a", 8_Bps}, {"b", 3_Bps}};
  const auto rates = rates_of(
      resources, {phase_on({{kFirst, 1}}), phase_on({{kSecond, 1}}), phase_on({{kFirst, 3}})});
  REQUIRE(rates == std::vector{2_Bps, 3_Bps, 2_Bps});
}

TEST_CASE("[M22] no phase could have more without taking from one that has no more") {
  // The definition of max-min fairness: each phase is at its cap or meets a full resource on which
  // no phase is faster; and no resource is overfull.
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    std::vector<graph::Resource> resources(1 + random.below(6));
    for (graph::Resource& resource : resources)
      resource.capacity = BytesPerSecond(random.uniform(0.5, 10));
    std::vector<graph::Phase> phases(1 + random.below(12));
    for (graph::Phase& phase : phases) {
      phase = phase_on({}, random.below(3) ? 0 : random.uniform(0.01, 3));
      for (std::uint32_t r = 0; r < resources.size(); ++r)
        if (random.below(2)) phase.loads.push_back({{r}, random.uniform(0.2, 5)});
      if (phase.loads.empty()) phase.loads.push_back({kFirst, 1});
    }
    const auto rates = rates_of(resources, phases);
    std::vector<double> used(resources.size());
    std::vector<double> fastest(resources.size());
    for (std::size_t i = 0; i < phases.size(); ++i)
      for (const graph::Load& load : phases[i].loads) {
        used[index(load.resource)] += load.flows * rates[i].si();
        fastest[index(load.resource)] = std::max(fastest[index(load.resource)], rates[i].si());
      }
    const double rounding = 1e-12;  // relative, sums of at most a dozen terms
    for (std::size_t r = 0; r < resources.size(); ++r)
      REQUIRE(used[r] <= resources[r].capacity.si() * (1 + rounding));
    for (std::size_t i = 0; i < phases.size(); ++i) {
      bool held = phases[i].rate_cap.si() > 0 && rates[i] == phases[i].rate_cap;
      for (const graph::Load& load : phases[i].loads) {
        const std::size_t r = index(load.resource);
        held |= used[r] >= resources[r].capacity.si() * (1 - rounding) &&
                rates[i].si() >= fastest[r] * (1 - rounding);
      }
      REQUIRE(held);
    }
  }
}
