// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/statistics.hpp"

#include <catch2/catch.hpp>

using namespace scapesim::bench;

TEST_CASE("median, quantiles and MAD of a known list, in any order") {
  const Summary summary = summary_of({5, 1, 4, 2, 3, 6, 7, 8, 9, 10, 11});
  CHECK(summary.median == 6);
  CHECK(summary.p5 == Approx(1.5));
  CHECK(summary.p95 == Approx(10.5));
  CHECK(summary.mad == 3);
  CHECK(summary_of({2.5}).median == 2.5);
  CHECK(summary_of({2.5}).mad == 0);
  CHECK(summary_of({1, 2}).median == 1.5);
}

TEST_CASE("one outlier moves neither median nor MAD") {
  std::vector<double> samples(51, 1.0);
  samples[17] = 1000;
  CHECK(summary_of(samples).median == 1);
  CHECK(summary_of(samples).mad == 0);
}

TEST_CASE("two rounds after a warm-up, all samples kept, their medians compared") {
  int calls = 0;
  const Measured measured = measure(
      {.warmup = 5, .samples = 50},
      [&](int number) {
        CHECK(number == calls);
        ++calls;
        if (number < 5) return 100.0;  // cold
        return number < 55 ? 2.0 : 2.1;
      },
      [] { return false; });
  CHECK(calls == 105);
  CHECK(measured.samples.size() == 100);
  CHECK(measured.samples.front() == 2.0);
  CHECK(measured.repeat_spread == Approx(0.05));
}

TEST_CASE("a measurement ends at once when it is asked to stop") {
  int calls = 0;
  CHECK_THROWS_AS(measure(
                      {}, [&](int) { return ++calls, 1.0; }, [&] { return calls == 12; }),
                  Interrupted);
  CHECK(calls == 12);
}
