// SPDX-License-Identifier: Apache-2.0
#include "sim/study/reliability.hpp"

#include <cmath>

#include "sim/strategy/optimizer.hpp"

namespace scapesim::study {

Seconds young_interval(const Reliability& job) {
  return Seconds(std::sqrt(2 * job.checkpoint.si() * job.mtbf.si()));
}

// [M370] Eq. 37 of Daly 2006; the mean time between failures itself where checkpoints take twice as
// long or longer.
Seconds daly_interval(const Reliability& job) {
  const double write = job.checkpoint.si(), mtbf = job.mtbf.si();
  if (write >= 2 * mtbf) return job.mtbf;
  const double ratio = write / (2 * mtbf);
  return Seconds(std::sqrt(2 * write * mtbf) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write);
}

// [M370] d/dt of (exp((t + write) / mtbf) - 1) / t is zero where x = 1 - exp(-(x + write / mtbf)),
// x = t / mtbf: Newton's method from Young's value, which lies above the root's left neighbourhood.
Seconds best_interval(const Reliability& job) {
  const double write = job.checkpoint / job.mtbf;
  if (write <= 0) return Seconds(0);
  double x = std::sqrt(2 * write);
  for (int i = 0; i < 100; ++i) {
    const double decay = std::exp(-(x + write));
    const double step = (x - 1 + decay) / (1 - decay);
    x -= step;
    if (std::abs(step) <= 1e-15 * x) break;
  }
  return job.mtbf * x;
}

// [M371] A stretch of interval + checkpoint is begun again after every failure, as is a restart:
// mtbf exp(restart / mtbf) (exp((interval + checkpoint) / mtbf) - 1) each, Daly 2006 eq. 13.
Seconds expected_makespan(Seconds work, Seconds interval, const Reliability& job) {
  const auto stretch = [&](Seconds length) {
    return job.mtbf * std::exp(job.restart / job.mtbf) * std::expm1(length / job.mtbf);
  };
  if (job.checkpoint <= Seconds(0) && interval <= Seconds(0))
    return work * std::exp(job.restart / job.mtbf);
  const double whole = std::floor(work / interval);
  const Seconds rest = work - whole * interval;
  const Seconds last = rest > Seconds(0) ? stretch(rest + job.checkpoint) : Seconds(0);
  return whole * stretch(interval + job.checkpoint) + last;
}

Bytes checkpoint_size(std::int64_t parameters, const spec::Training& training) {
  constexpr double kFp32 = 4;
  const double copy = training.precision == spec::Precision::fp32
                          ? 0
                          : strategy::parameter_bytes(training.precision);
  return Bytes((kFp32 * (1 + strategy::moments(training.optimizer)) + copy) *
               static_cast<double>(parameters));
}

// [M375] Kaplan et al. 2020 eq. 1.4 at the loss of Hoffmann et al. 2022 eq. 10 (third approach).
Tokens critical_batch_estimate(std::int64_t parameters, Tokens tokens) {
  const double loss = 1.69 + 406.4 / std::pow(static_cast<double>(parameters), 0.34) +
                      410.7 / std::pow(tokens.si(), 0.28);
  return Tokens(2e8 / std::pow(loss, 1 / 0.21));
}

double tokens_factor(double batch, double base_batch, double critical_batch) {
  return (1 + batch / critical_batch) / (1 + base_batch / critical_batch);
}

}  // namespace scapesim::study
