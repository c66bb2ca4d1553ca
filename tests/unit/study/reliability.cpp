// SPDX-License-Identifier: Apache-2.0
#include "sim/study/reliability.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.hpp"

using namespace scapesim;

namespace {

/// Plays one run: failures fall at exponential times, into restarts too.
class Machine {
 public:
  Machine(const study::Reliability& job, std::uint64_t seed) : job_(job), random_(seed) {}

  double makespan(double work, double interval) {
    double time = 0, done = 0;
    double failure = draw();
    while (done < work) {
      const double stretch = std::min(interval, work - done);
      const double end = time + stretch + job_.checkpoint.si();
      if (failure >= end) {
        time = end;
        done += stretch;
        continue;
      }
      time = failure;
      failure = time + draw();
      while (failure < time + job_.restart.si()) {
        time = failure;
        failure = time + draw();
      }
      time += job_.restart.si();
    }
    return time;
  }

 private:
  double draw() { return -job_.mtbf.si() * std::log1p(-random_.uniform()); }

  study::Reliability job_;
  Random random_;
};

double mean_makespan(const study::Reliability& job, double work, double interval, int runs) {
  Machine machine(job, 20260729);
  double sum = 0;
  for (int i = 0; i < runs; ++i) sum += machine.makespan(work, interval);
  return sum / runs;
}

study::Reliability job(double mtbf, double restart, double checkpoint) {
  return {.mtbf = Seconds(mtbf), .restart = Seconds(restart), .checkpoint = Seconds(checkpoint)};
}

}  // namespace

// [M371]
TEST_CASE("the expected makespan agrees with played failures within 2 %") {
  // Hours to minutes between failures: 16,384 GPUs, a cluster of old cards, a fault every restart.
  for (const auto& one : {job(11'000, 600, 60), job(86'400, 1800, 120), job(3600, 900, 300)}) {
    const double interval = study::best_interval(one).si();
    const double work = 300 * interval;
    const double expected = study::expected_makespan(Seconds(work), Seconds(interval), one).si();
    INFO(one.mtbf.si());
    CHECK(mean_makespan(one, work, interval, 400) == Approx(expected).epsilon(0.02));
    const double odd = 1.7 * interval;
    CHECK(mean_makespan(one, work, odd, 400) ==
          Approx(study::expected_makespan(Seconds(work), Seconds(odd), one).si()).epsilon(0.02));
  }
}

// [M370]
TEST_CASE("the best interval is that of played failures, and Young's and Daly's lie beside it") {
  for (const auto& one : {job(11'000, 600, 60), job(86'400, 1800, 120), job(3600, 900, 300)}) {
    const double best = study::best_interval(one).si();
    const double work = 200 * best;
    const double at_best = mean_makespan(one, work, best, 300);
    for (const double factor : {0.4, 0.7, 1.5, 2.5})
      CHECK(at_best <= mean_makespan(one, work, factor * best, 300) * 1.005);  // noise of the draws
    // Daly's expansion is his model's optimum to 2 % where a checkpoint is a tenth of the MTBF.
    CHECK(study::daly_interval(one).si() == Approx(best).epsilon(0.02));
    const double young = study::young_interval(one).si();
    const double loss = study::expected_makespan(Seconds(work), Seconds(young), one) /
                        study::expected_makespan(Seconds(work), Seconds(best), one);
    CHECK(loss >= 1 - 1e-3);
    CHECK(loss <= 1.02);
  }
}

TEST_CASE("the best interval is the minimum of the expected makespan") {
  const auto one = job(20'000, 300, 100);
  const Seconds best = study::best_interval(one);
  const auto cost = [&](double factor) {
    return study::expected_makespan(1e6 * best * factor, best * factor, one) / factor;
  };
  CHECK(cost(1) < cost(1.01));
  CHECK(cost(1) < cost(0.99));
}

TEST_CASE("without failures a run takes its work and its checkpoints") {
  const auto one = job(1e15, 600, 50);
  CHECK(study::expected_makespan(Seconds(1000), Seconds(100), one).si() ==
        Approx(1000 + 10 * 50).epsilon(1e-9));
  CHECK(study::expected_makespan(Seconds(1050), Seconds(100), one).si() ==
        Approx(1050 + 11 * 50).epsilon(1e-9));
}

// [M372]
TEST_CASE("a checkpoint holds weights and optimizer state") {
  spec::Training training;
  training.optimizer = spec::Optimizer::adamw;
  CHECK(study::checkpoint_size(1'000, training).si() == 14'000);
  training.precision = spec::Precision::fp32;
  CHECK(study::checkpoint_size(1'000, training).si() == 12'000);
}

// [M373]
TEST_CASE("beyond the critical batch tokens are spent for steps") {
  CHECK(study::tokens_factor(4e6, 4e6, 4e6) == 1);
  CHECK(study::tokens_factor(8e6, 4e6, 4e6) == 1.5);
  // At twice the batch: 1.5 times the tokens in 0.75 of the steps.
  CHECK(study::tokens_factor(1e3, 1, 1e9) == Approx(1).epsilon(1e-5));
}

// [M375]
TEST_CASE("the estimated critical batch grows with what the model has learnt") {
  // GPT-3's size after 300 billion tokens: about 2 nats, so some millions of tokens.
  const double gpt3 = study::critical_batch_estimate(175'000'000'000, Tokens(3e11)).si();
  CHECK(gpt3 > 3e6);
  CHECK(gpt3 < 1e7);
  CHECK(study::critical_batch_estimate(125'000'000, Tokens(3e9)).si() < gpt3 / 5);
}
