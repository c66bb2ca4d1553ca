// SPDX-License-Identifier: Apache-2.0
// From timed collectives to the modes of a profile: which algorithm a call ran, in which regime,
// and what latency and efficiency that says. The flat closed forms of collective_traffic.hpp carry
// it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calib/fit.hpp"
#include "calib/observations.hpp"
#include "sim/cost/collective_traffic.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

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

/// A timed call on full nodes, with the line rates it ran on.
struct TimedCall {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  cost::Layout layout;
  cost::LineRates rates;
  Bytes size;
  Seconds time;
  std::optional<graph::Algorithm> algorithm;  ///< none: as NCCL picks by itself, [M123]
};

/// [M123] What NCCL runs for small and for large calls: `bulk` is Simple, `small` LL and LL128.
struct Algorithms {
  graph::Algorithm bulk = graph::Algorithm::ring;
  graph::Algorithm small = graph::Algorithm::ring;
  auto operator<=>(const Algorithms&) const = default;
};
/// `nvls_ranks`: fewest ranks of a node that use NVLS; none: the machine has none.
Algorithms algorithms_of(graph::CollectiveKind kind, const cost::Layout& layout,
                         std::optional<int> nvls_ranks);

/// [M124] Sets the modes (network.inside.*, network.between.*) that the calls tell, and the plain
/// numbers of what has no mode. Calls that are too few, or that no algorithm explains, are named in
/// `gaps`; fits with residuals go to `report`.
void fit_modes(cost::Profile& profile, const std::vector<TimedCall>& calls,
               const cost::Origin& origin, std::string& report, std::vector<std::string>& gaps);

/// Predicted time of a call alone: the fastest mode that the profile offers.
Seconds predicted_alone(const cost::Profile& profile, const TimedCall& call);

/// fit_modes() of what logs hold, on the links of `cluster`.
void fit_collectives(cost::Profile& profile, const std::vector<CollectiveSample>& samples,
                     const spec::Cluster& cluster, const std::string& source, std::string& report,
                     std::vector<std::string>& gaps);

}  // namespace scapesim::calib
