// SPDX-License-Identifier: Apache-2.0
// SCAPE's identities: dense AdamS at density 1, what residuals conserve, which switches must not
// change a bit.
#include "kernels/reference/scape.hpp"

#include <catch2/catch.hpp>

#include "sim/base/check.hpp"
#include "tests/unit/kernels/support.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

constexpr int kSteps = 20;

ScapeOptions options_of(double density) {
  ScapeOptions options;
  options.density = density;
  return options;
}

/// Every combination of owners, partition and delay.
std::vector<ScapeOptions> mask_schemes(double density) {
  std::vector<ScapeOptions> list;
  for (const Owners owners : {Owners::even, Owners::tensor})
    for (const MaskPartition partition : {MaskPartition::owner, MaskPartition::global})
      for (const int delay : {0, 1}) {
        ScapeOptions options = options_of(density);
        options.owners = owners;
        options.mask_partition = partition;
        options.mask_delay = delay;
        list.push_back(options);
      }
  return list;
}

ScapeOptions distributed(double density, SecondPayload second) {
  ScapeOptions options = options_of(density);
  options.sharding = Sharding::distributed;
  options.second_payload = second;
  return options;
}

/// Largest difference of parameters from dense AdamS over 100 steps on 4 ranks.
template <class T>
double distance_from_dense(const ScapeOptions& options, bool expect_clipping) {
  const std::vector<Tensor> tensors = odd_tensors();
  const std::size_t n = total_of(tensors);
  Random random(1);
  const std::vector<T> start = random_values<T>(n, random);
  Communicator communicator(4);
  Dense<T> dense(Method::adams, options.adam, start, communicator);
  Scape<T> scape(tensors, start, options, communicator);
  double largest = 0;
  int clipped = 0;
  for (int step = 0; step < 100; ++step) {
    PerRank<T> gradients = random_gradients<T>(4, n, random);
    // A drift that all ranks share, so that moments grow.
    for (auto& gradient : gradients)
      for (std::size_t i = 0; i < n; ++i) gradient[i] += static_cast<T>(i % 5) / 8;
    const StepReport by_dense = dense.step(gradients, 1e-2);
    const StepReport by_scape = scape.step(gradients, 1e-2);
    CHECK(by_scape.clip_factor == Approx(by_dense.clip_factor).epsilon(1e-4));
    clipped += by_dense.clip_factor < 1 ? 1 : 0;
    largest = std::max(largest, largest_difference(dense.parameters(), scape.parameters(3)));
  }
  CHECK((clipped > 20) == expect_clipping);
  CHECK(largest_difference(start, dense.parameters()) > 0.1);
  return largest;
}

}  // namespace

TEMPLATE_TEST_CASE("at density 1 SCAPE is dense AdamS, 100 steps on 4 ranks", "", float, double) {
  // Each step moves a parameter by about 1e-2; the rebuilt gradient carries the rounding of the
  // moments tenfold: 1e-6 of a step's size in single precision, a hundred times.
  const double rounding = sizeof(TestType) == 4 ? 2e-6 : 1e-14;
  ScapeOptions options = options_of(1);
  CHECK(distance_from_dense<TestType>(options, false) < rounding);
  options.adam.bias_correction = BiasCorrection::off;
  CHECK(distance_from_dense<TestType>(options, false) < rounding);
  options = distributed(1, SecondPayload::weights);
  CHECK(distance_from_dense<TestType>(options, false) < rounding);
}

TEMPLATE_TEST_CASE("at density 1 SCAPE is dense AdamS also when clipping fires", "", float,
                   double) {
  const double rounding = sizeof(TestType) == 4 ? 2e-6 : 1e-14;  // as above
  ScapeOptions options = options_of(1);
  options.adam.clip = 5;
  CHECK(distance_from_dense<TestType>(options, true) < rounding);
}

TEMPLATE_TEST_CASE("moment and mean residual together lose nothing, whatever the mask", "", float,
                   double) {
  // m + mean r = b1 m_before + mean r_before + (1-b1) mean g: a few roundings of numbers below 1.
  const double rounding = sizeof(TestType) == 4 ? 2e-7 : 5e-16;
  const std::vector<Tensor> tensors = odd_tensors();
  const std::size_t n = total_of(tensors);
  for (const double density : {0.5, 0.1, 0.01})
    for (const ScapeOptions& options : mask_schemes(density)) {
      constexpr int kRanks = 4;
      Random random(2);
      Communicator communicator(kRanks);
      Scape<TestType> scape(tensors, random_values<TestType>(n, random), options, communicator);
      const auto mean = [&](std::size_t i, const auto& value_of) {
        double sum = 0;
        for (std::size_t rank = 0; rank < kRanks; ++rank)
          sum += static_cast<double>(value_of(rank)[i]);
        return sum / kRanks;
      };
      const auto residual = [&](std::size_t rank) -> const auto& { return scape.residual(rank); };
      double worst = 0;
      for (int step = 0; step < kSteps; ++step) {
        const PerRank<TestType> gradients = random_gradients<TestType>(kRanks, n, random);
        std::vector<double> expected(n);
        for (std::size_t i = 0; i < n; ++i)
          expected[i] = 0.9 * static_cast<double>(scape.moment(0)[i]) + mean(i, residual) +
                        0.1 * mean(i, [&](std::size_t rank) { return gradients[rank]; });
        scape.step(gradients, 1e-2);
        for (std::size_t i = 0; i < n; ++i)
          worst = std::max(worst, std::abs(static_cast<double>(scape.moment(0)[i]) +
                                           mean(i, residual) - expected[i]));
      }
      CHECK(worst < rounding);
      CHECK(worst > 0);
    }
}

TEST_CASE("all ranks hold the same bits of weights, moment and masks after every step") {
  for (ScapeOptions options : mask_schemes(0.1)) {
    options.adam.clip = 2;
    Trial<float> trial(odd_tensors(), 5, options);
    for (int step = 0; step < kSteps; ++step) {
      trial.step();
      const Scape<float>& scape = trial.scape();
      for (std::size_t rank = 1; rank < trial.ranks(); ++rank) {
        CHECK(scape.parameters(rank) == scape.parameters(0));
        CHECK(scape.moment(rank) == scape.moment(0));
        CHECK(scape.mask(rank) == scape.mask(0));
        CHECK(scape.next_mask(rank) == scape.next_mask(0));
        CHECK(scape.residual(rank) != scape.residual(0));
      }
    }
  }
}

TEST_CASE("the distributed optimizer gives the same bits, with the second payload and without") {
  for (const double density : {1.0, 0.1, 0.01})
    for (const int ranks : {2, 3, 8}) {
      Trial<float> replicated(odd_tensors(), ranks, options_of(density));
      Trial<float> sharded(odd_tensors(), ranks, distributed(density, SecondPayload::weights));
      Trial<float> alone(odd_tensors(), ranks, distributed(density, SecondPayload::none));
      for (int step = 0; step < kSteps; ++step) {
        const std::vector<float>& expected = replicated.after(1);
        CHECK(sharded.after(1) == expected);
        CHECK(alone.after(1) == expected);
        for (std::size_t rank = 1; rank < sharded.ranks(); ++rank)
          CHECK(sharded.scape().parameters(rank) == expected);
      }
    }
}

TEST_CASE(
    "with the distributed optimizer a gradient counts that only another rank than the owner has") {
  Communicator communicator(2);
  const ScapeOptions options = distributed(1, SecondPayload::weights);
  Scape<double> scape({{4, false}}, {1, 1, 1, 1}, options, communicator);
  scape.step({{0, 0, 1, 0}, {1, 0, 0, 0}}, 0.1);  // rank 0 owns the first two elements
  CHECK(scape.moment(0) == std::vector<double>{0.5 * (1 - 0.9), 0, 0.5 * (1 - 0.9), 0});
  CHECK(scape.parameters(0)[0] < 0.9);
  CHECK(scape.parameters(1)[0] == scape.parameters(0)[0]);
}

TEST_CASE("offload changes no bit, and moves the state in and out once per step") {
  const std::vector<float> expected = Trial<float>(odd_tensors(), 3, options_of(0.1)).after(kSteps);
  const auto n = static_cast<std::int64_t>(expected.size());
  for (const std::size_t chunk : {1U, 7U, 64U, 965U, 4096U}) {
    ScapeOptions options = options_of(0.1);
    options.residual = options.replica = Storage::host;
    options.chunk = chunk;
    Trial<float> trial(odd_tensors(), 3, options);
    trial.step();
    const std::int64_t residual = trial.scape().stored_residual(1).bytes_in();
    const std::int64_t replica = trial.scape().stored_replica(1).bytes_out();
    CHECK(trial.after(kSteps - 1) == expected);
    CHECK(trial.scape().stored_residual(1).bytes_in() == residual + (kSteps - 1) * 4 * n);
    CHECK(trial.scape().stored_residual(1).bytes_out() == residual + (kSteps - 1) * 4 * n);
    CHECK(trial.scape().stored_replica(1).bytes_out() == replica + (kSteps - 1) * 4 * n);
    CHECK(replica == 4 * n);
  }
}

TEST_CASE("the offloaded replica of the distributed optimizer changes no bit") {
  for (const SecondPayload second : {SecondPayload::weights, SecondPayload::none}) {
    ScapeOptions options = distributed(0.05, second);
    const std::vector<float> expected = Trial<float>(odd_tensors(), 4, options).after(kSteps);
    options.residual = options.replica = Storage::host;
    options.chunk = 100;
    CHECK(Trial<float>(odd_tensors(), 4, options).after(kSteps) == expected);
  }
}

TEST_CASE("[M41] every step sends exactly the elements that the rule counts") {
  for (const double density : {0.5, 0.1, 0.01})
    for (const int ranks : {1, 2, 7, 16})
      for (const Owners owners : {Owners::even, Owners::tensor}) {
        ScapeOptions options = options_of(density);
        options.owners = owners;
        std::size_t expected = 0;
        for (const auto& part : ownership(odd_tensors(), ranks, owners))
          for (const Piece& piece : part) expected += top_count(piece, density);
        Trial<float> trial(odd_tensors(), ranks, options);
        for (int step = 0; step < 5; ++step) {
          CHECK(trial.step().selected == expected);
          CHECK(count(trial.scape().mask(0)) == expected);
        }
      }
}

TEST_CASE("ties in the scores do not change how many elements travel") {
  Communicator communicator(3);
  Scape<float> scape({{100, false}}, std::vector<float>(100), options_of(0.1), communicator);
  const PerRank<float> equal(3, std::vector<float>(100, 0.5F));
  // Parts of 34, 34 and 32 elements, each floor(d numel) = 3.
  CHECK(scape.step(equal, 0.1).selected == 9);
  CHECK(count(std::span(scape.mask(2)).first(3)) == 3);
  CHECK(count(std::span(scape.mask(2)).subspan(34, 3)) == 3);
  for (int step = 0; step < 5; ++step) CHECK(scape.step(equal, 0.1).selected == 9);
}

TEST_CASE("the first step makes its own mask; later ones use the mask of the step before") {
  Trial<float> trial(odd_tensors(), 4, options_of(0.1));
  const auto gathers = [&] {
    std::ptrdiff_t sum = 0;
    for (const Call& call : trial.communicator().calls()) sum += call.name == "mask all-gather";
    trial.communicator().forget_calls();
    return sum;
  };
  trial.step();
  CHECK(gathers() == 2);
  CHECK(trial.scape().mask(0) == trial.scape().next_mask(0));  // the same scores
  for (int step = 0; step < 5; ++step) {
    const Mask announced = trial.scape().next_mask(0);
    trial.step();
    CHECK(gathers() == 1);
    CHECK(trial.scape().mask(0) == announced);
  }
}

TEST_CASE("a mask follows its owner's values alone") {
  Communicator communicator(2);
  ScapeOptions options = options_of(0.25);
  options.mask_delay = 0;
  Scape<float> scape({{8, false}}, std::vector<float>(8), options, communicator);
  scape.step({{0, 3, 0, 0, 0, 0, 9, 0}, {9, 0, 0, 0, 0, 0, 0, 3}}, 0.1);
  CHECK(scape.mask(1) == Mask{0, 1, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("[M46] the warm-up begins dense and ends at the density") {
  ScapeOptions options = options_of(0.01);
  options.density_warmup = 4;
  Trial<float> trial({{10'000, false}}, 2, options);
  for (const std::size_t expected : {10'000U, 3162U, 1000U, 316U, 100U, 100U})
    CHECK(trial.step().selected == expected);
}

TEST_CASE("[M45] global masks select what any rank would, and fill in") {
  ScapeOptions options = options_of(0.1);
  options.mask_partition = MaskPartition::global;
  Trial<float> one({{10'000, false}}, 1, options);
  CHECK(one.step().selected == 1000);
  Trial<float> eight({{10'000, false}}, 8, options);
  // Independent gradients: 1-(1-d)^P = 0.5695, with a standard deviation below 0.005.
  CHECK(static_cast<double>(eight.step().selected) == Approx(5695).margin(150));
}

TEST_CASE("one payload buffer gives what two would, but for rounding") {
  ScapeOptions options = options_of(0.1);
  options.adam.clip = 3;
  Trial<double> one(odd_tensors(), 4, options);
  options.payload_buffers = PayloadBuffers::two;
  Trial<double> two(odd_tensors(), 4, options);
  CHECK(largest_difference(one.after(kSteps), two.after(kSteps)) < 1e-13);
}

TEST_CASE("single precision follows double over twenty steps") {
  // A rounding can swap two elements that are almost equal, in a mask; with this seed none does.
  Trial<float> single(odd_tensors(), 4, options_of(0.1));
  Trial<double> exact(odd_tensors(), 4, options_of(0.1));
  const std::vector<float>& found = single.after(kSteps);
  const std::vector<double> wide(found.begin(), found.end());
  // 1e-2 per step at most, 20 steps: 1e-5 of what was moved.
  CHECK(largest_difference(wide, exact.after(kSteps)) < 2e-6);
  CHECK(single.scape().mask(0) == exact.scape().mask(0));
}

TEST_CASE("tensors of 1, 31, 32, 33 or a prime number of elements work on any number of ranks") {
  for (const std::size_t n : {1U, 31U, 32U, 33U, 97U, 1009U})
    for (const int ranks : {1, 2, 3, 8, 50})
      for (const ScapeOptions& options :
           {options_of(0.1), distributed(0.1, SecondPayload::weights)}) {
        Trial<float> trial({{n, false}}, ranks, options);
        const std::vector<float>& parameters = trial.after(3);
        CHECK(std::ranges::all_of(parameters, [](float p) { return std::isfinite(p); }));
        for (std::size_t rank = 1; rank < trial.ranks(); ++rank)
          CHECK(trial.scape().parameters(rank) == parameters);
      }
}

TEST_CASE("what is not finite on its owner reaches all ranks in the step after the mask is made") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Communicator communicator(2);
  Scape<float> scape({{8, false}}, std::vector<float>(8), options_of(0.25), communicator);
  scape.step({{1, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 0, 0, 0}}, 0.1);
  scape.step({{1, 0, nan, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 0, 0, 0}}, 0.1);
  CHECK(std::isfinite(scape.parameters(0)[2]));
  CHECK(scape.next_mask(1)[2] == 1);
  scape.step({{1, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 0, 0, 0}}, 0.1);
  CHECK(std::isnan(scape.parameters(0)[2]));
  CHECK(std::isnan(scape.parameters(1)[2]));
}

TEST_CASE("what is not finite on another rank stays in that rank's residual until it is selected") {
  Communicator communicator(2);
  Scape<float> scape({{8, false}}, std::vector<float>(8), options_of(0.25), communicator);
  const float infinity = std::numeric_limits<float>::infinity();
  scape.step({{1, 0, 0, 0, 0, 0, 0, 0}, {0, 0, infinity, 0, 1, 0, 0, 0}}, 0.1);
  scape.step(PerRank<float>(2, std::vector<float>(8)), 0.1);
  CHECK(std::isinf(scape.residual(1)[2]));
  CHECK(std::isfinite(scape.parameters(1)[2]));
}

TEST_CASE("a step with a gradient that is not finite can be skipped on all ranks") {
  ScapeOptions options = options_of(0.25);
  options.non_finite = NonFinite::skip;
  Communicator communicator(2);
  Scape<float> scape({{8, false}}, std::vector<float>(8, 1), options, communicator);
  PerRank<float> gradients(2, std::vector<float>(8, 0.5F));
  CHECK_FALSE(scape.step(gradients, 0.1).skipped);
  const std::vector<float> parameters = scape.parameters(0);
  const std::vector<float> residual = scape.residual(1);
  const Mask next = scape.next_mask(1);
  gradients[1][7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(scape.step(gradients, 0.1).skipped);
  CHECK(scape.parameters(0) == parameters);
  CHECK(scape.residual(1) == residual);
  CHECK(scape.next_mask(1) == next);
  gradients[1][7] = 0.5F;
  CHECK_FALSE(scape.step(gradients, 0.1).skipped);
  CHECK(scape.parameters(0) != parameters);
}

TEST_CASE("options that contradict each other are refused") {
  Communicator communicator(2);
  const std::vector<float> parameters(8);
  ScapeOptions options = distributed(0.1, SecondPayload::weights);
  options.owners = Owners::tensor;
  CHECK_THROWS_AS(Scape<float>({{8, false}}, parameters, options, communicator), InternalError);
  CHECK_THROWS_AS(Scape<float>({{7, false}}, parameters, options_of(0.1), communicator),
                  InternalError);
  CHECK_THROWS_AS(Scape<float>({{8, false}}, parameters, options_of(0), communicator),
                  InternalError);
}
