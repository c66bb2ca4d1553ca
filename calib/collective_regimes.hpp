// SPDX-License-Identifier: Apache-2.0
// Timed calls of one algorithm as straight lines: time against bytes and steps, cut into regimes by
// size.
#pragma once

#include <span>
#include <vector>

#include "calib/fit.hpp"
#include "sim/base/units.hpp"

namespace scapesim::calib {

/// What a call is to a fit: time at full line rate, latencies paid, measured time.
struct CollectiveRow {
  Bytes size;
  Seconds wire;      ///< bytes of the busiest link over its line rate
  double steps = 0;  ///< latencies in a row
  Seconds time;
};

/// t = wire / efficiency + steps alpha + base. The base is fitted where steps differ, else it is
/// part of alpha.
struct Regime {
  Bytes from;                       ///< sizes from here to the next regime's
  Fit fit;                          ///< value = (1/efficiency, alpha, base)
  std::size_t first = 0, rows = 0;  ///< which rows, in ascending size without outliers
};

struct CollectiveFit {
  std::vector<Regime> regimes;      ///< at least one, ascending
  std::vector<CollectiveRow> rows;  ///< as fitted
  std::vector<Bytes> outliers;      ///< sizes left out
};

/// [M86] The best split into at most `most` regimes of three rows or more, as the Bayesian
/// information criterion judges it. Rows further off than 4 robust standard deviations are left
/// out, a fifth of them at most. Needs 4 rows.
CollectiveFit fit_regimes(std::vector<CollectiveRow> rows, int most = 5);

/// Fewest rows that a fit takes.
inline constexpr std::size_t kFewestRows = 4;

using Rows = std::span<const CollectiveRow>;

/// Sizes less than a factor of 4 apart tell no latency.
bool tell_latency(Rows rows);
/// Whether a call's base can be told from its steps.
bool steps_differ(Rows rows);

/// The line (1/efficiency, alpha, base) of the rows. Terms are at least 0: the most negative one,
/// relative to its error, is dropped and the rest fitted again.
Fit fit_line(Rows rows);

}  // namespace scapesim::calib
