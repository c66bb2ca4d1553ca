// SPDX-License-Identifier: Apache-2.0
// Long runs on machines that fail: checkpoints, their best interval, expected time to the end.
// Failures are exponential and hit nodes independently; checkpoints are written while training
// waits.
#pragma once

#include <optional>

#include "sim/spec/spec.hpp"

namespace scapesim::study {

/// What a job meets: all of it known.
struct Reliability {
  Seconds mtbf;        ///< of the whole job
  Seconds restart;     ///< from a failure until training goes on
  Seconds checkpoint;  ///< time to write one
};

/// [M370] Young 1974: first order.
Seconds young_interval(const Reliability& job);
/// [M370] Daly 2006, higher order.
Seconds daly_interval(const Reliability& job);
/// [M370] Work between checkpoints that makes expected_makespan() shortest: Daly's complete model,
/// solved.
Seconds best_interval(const Reliability& job);

/// [M371] Expected time of `work` seconds of training with a checkpoint after every `interval` of
/// them, failures and restarts included.
Seconds expected_makespan(Seconds work, Seconds interval, const Reliability& job);

/// [M372] Parameters in compute precision and fp32, and the optimizer's moments.
Bytes checkpoint_size(std::int64_t parameters, const spec::Training& training);

/// [M373] Steps and tokens at another batch, McCandlish et al. 2018: tokens(B) ~ 1 + B / critical.
double tokens_factor(double batch, double base_batch, double critical_batch);

/// [M375] The critical batch at the loss that scaling laws give a model after so many tokens.
Tokens critical_batch_estimate(std::int64_t parameters, Tokens tokens);

}  // namespace scapesim::study
