// SPDX-License-Identifier: Apache-2.0
#include "calib/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "sim/base/check.hpp"
#include "sim/base/unit_text.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Provenance;
using cost::Scope;
using Eigen::VectorXd;
using graph::Algorithm;
using graph::CollectiveKind;
using graph::Protocol;

namespace {

constexpr std::size_t kFewest = 4;
constexpr std::size_t kFewestPerRegime = 3;
/// Below a page every protocol sends one packet: no regime begins there.
constexpr Bytes kSmallestBreak{4096};

using Rows = std::span<const CollectiveRow>;

/// Sizes less than a factor of 4 apart tell no latency.
bool tell_latency(Rows rows) {
  const auto [least, most] =
      std::ranges::minmax(rows, {}, [](const CollectiveRow &row) { return row.size; });
  return most.size >= 4 * least.size;
}

bool steps_differ(Rows rows) {
  return std::ranges::any_of(rows, [&](const auto &row) { return row.steps != rows[0].steps; });
}

Eigen::MatrixXd design_of(Rows rows) {
  Eigen::MatrixXd design(static_cast<Eigen::Index>(rows.size()), steps_differ(rows) ? 3 : 2);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    design(at, 0) = rows[i].wire.si();
    design(at, 1) = rows[i].steps;
    if (design.cols() == 3) design(at, 2) = 1;
  }
  return design;
}

VectorXd times_of(Rows rows) {
  VectorXd times(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    times[static_cast<Eigen::Index>(i)] = rows[i].time.si();
  return times;
}

/// Terms are at least 0: the most negative one, relative to its error, is
/// dropped and the rest fitted again.
Fit fit_line(Rows rows) {
  const Eigen::MatrixXd design = design_of(rows);
  const VectorXd times = times_of(rows);
  std::vector<Eigen::Index> kept;
  for (Eigen::Index i = 0; i < design.cols(); ++i)
    if (design.col(i).any() && static_cast<Eigen::Index>(rows.size()) > i + 1) kept.push_back(i);
  const std::vector<Eigen::Index> all = kept;
  const VectorXd error_of_all = fit_linear(design(Eigen::all, all), times).standard_error;
  while (true) {
    Fit fit = fit_linear(design(Eigen::all, kept), times);
    Eigen::Index lowest = 0;
    if (fit.value.minCoeff(&lowest) >= 0) {
      Fit full = fit;
      full.value = full.standard_error = VectorXd::Zero(3);
      for (std::size_t i = 0; i < all.size(); ++i)
        full.standard_error[all[i]] = error_of_all[static_cast<Eigen::Index>(i)];
      for (std::size_t i = 0; i < kept.size(); ++i) {
        full.value[kept[i]] = fit.value[static_cast<Eigen::Index>(i)];
        full.standard_error[kept[i]] = fit.standard_error[static_cast<Eigen::Index>(i)];
      }
      return full;
    }
    kept.erase(kept.begin() + lowest);
  }
}

double squared(const Fit &fit) { return fit.rows * fit.rms * fit.rms; }

/// Least squares of all splits into 1 .. most regimes (Bellman 1961), then the
/// information criterion.
class Splits {
 public:
  explicit Splits(const std::vector<CollectiveRow> &rows) : rows_(rows) {
    for (std::size_t end = kFewestPerRegime; end <= rows.size(); ++end)
      for (std::size_t begin = 0; begin + kFewestPerRegime <= end; ++begin)
        if (begin == 0 ||
            (rows[begin].size > rows[begin - 1].size && rows[begin].size >= kSmallestBreak))
          lines_[{begin, end}] = fit_line(Rows(rows).subspan(begin, end - begin));
  }

  std::vector<Regime> best(int most) const {
    const std::size_t count = rows_.size();
    // best_[k][end]: least squares of the first `end` rows in k regimes, and
    // where the last begins
    std::vector<std::map<std::size_t, std::pair<double, std::size_t>>> table(1);
    table[0][0] = {0, 0};
    double least = std::numeric_limits<double>::infinity();
    std::size_t regimes = 1;
    for (int k = 1; k <= most; ++k) {
      table.emplace_back();
      for (const auto &[range, fit] : lines_) {
        const auto before = table[table.size() - 2].find(range.first);
        if (before == table[table.size() - 2].end()) continue;
        const double sum = before->second.first + squared(fit);
        const auto [entry, is_new] = table.back().try_emplace(range.second, sum, range.first);
        if (!is_new && sum < entry->second.first) entry->second = {sum, range.first};
      }
      const auto whole = table.back().find(count);
      if (whole == table.back().end()) break;
      const double value = criterion(whole->second.first, 3 * k - 1);
      if (value >= least) continue;
      least = value;
      regimes = static_cast<std::size_t>(k);
    }
    std::vector<Regime> list;
    for (std::size_t k = regimes, end = count; k > 0; --k) {
      const std::size_t begin = table[k].at(end).second;
      list.insert(list.begin(), {.from = rows_[begin].size,
                                 .fit = lines_.at({begin, end}),
                                 .first = begin,
                                 .rows = end - begin});
      end = begin;
    }
    return list;
  }

 private:
  /// Akaike 1974.
  double criterion(double squares, int parameters) const {
    const auto n = static_cast<double>(rows_.size());
    const double floor = 1e-8;  // rms of 0.01 %: tables are rounded
    return n * std::log(squares / n + floor) + 2.0 * parameters;
  }

  const std::vector<CollectiveRow> &rows_;
  std::map<std::pair<std::size_t, std::size_t>, Fit> lines_;
};

VectorXd residuals_of(const CollectiveFit &fit) {
  VectorXd residual(static_cast<Eigen::Index>(fit.rows.size()));
  for (const Regime &regime : fit.regimes) {
    const Rows rows = Rows(fit.rows).subspan(regime.first, regime.rows);
    const Eigen::MatrixXd design = design_of(rows);
    residual.segment(static_cast<Eigen::Index>(regime.first),
                     static_cast<Eigen::Index>(regime.rows)) =
        ((design * regime.fit.value.head(design.cols())).array() / times_of(rows).array() - 1)
            .matrix();
  }
  return residual;
}

double median_of_magnitudes(const VectorXd &values) {
  std::vector<double> list(values.begin(), values.end());
  for (double &value : list) value = std::abs(value);
  std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2),
                   list.end());
  return list[list.size() / 2];
}

}  // namespace

CollectiveFit fit_regimes(std::vector<CollectiveRow> rows, int most) {
  SCAPESIM_CHECK(rows.size() >= kFewest, "{} rows", rows.size());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CollectiveRow &a, const CollectiveRow &b) { return a.size < b.size; });
  const std::size_t most_outliers = rows.size() / 5;
  CollectiveFit fit{.regimes = {}, .rows = std::move(rows), .outliers = {}};
  while (true) {
    fit.regimes = Splits(fit.rows).best(most);
    const VectorXd residual = residuals_of(fit);
    constexpr double kGaussian = 1.4826;  // standard deviation over median magnitude
    const double limit = 4 * kGaussian * std::max(median_of_magnitudes(residual), 1e-3);
    Eigen::Index worst = 0;
    const double largest = residual.cwiseAbs().maxCoeff(&worst);
    if (largest <= limit || fit.outliers.size() >= most_outliers || fit.rows.size() <= kFewest)
      return fit;
    fit.outliers.push_back(fit.rows[static_cast<std::size_t>(worst)].size);
    fit.rows.erase(fit.rows.begin() + worst);
  }
}

// [M123]
Algorithms algorithms_of(CollectiveKind kind, const cost::Layout &layout,
                         std::optional<int> nvls_ranks) {
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv)
    return {Algorithm::pairwise, Algorithm::pairwise};
  if (kind != CollectiveKind::all_reduce) return {Algorithm::ring, Algorithm::ring};
  const bool nvls = nvls_ranks && layout.ranks / layout.nodes >= *nvls_ranks;
  if (layout.nodes == 1) return {nvls ? Algorithm::nvls : Algorithm::ring, Algorithm::ring};
  if (layout.nodes > 2) return {Algorithm::ring, Algorithm::tree};
  return {nvls ? Algorithm::nvls_tree : Algorithm::tree, Algorithm::tree};
}

namespace {

Scope scope_of(const TimedCall &call) {
  return call.layout.nodes == 1 ? Scope::inside : Scope::between;
}

cost::Traffic traffic_of(const TimedCall &call, Algorithm algorithm) {
  return cost::traffic_of(algorithm, call.kind, call.layout).value_or(cost::Traffic{});
}

/// Time per byte of size at full line rate: of the NIC between nodes, of the
/// node link inside.
double wire_per_byte(const TimedCall &call, Algorithm algorithm) {
  const cost::Traffic traffic = traffic_of(call, algorithm);
  return scope_of(call) == Scope::inside ? traffic.node_link / call.rates.node_link.si()
                                         : traffic.nic / call.rates.nic.si();
}

CollectiveRow row_of(const TimedCall &call, Algorithm algorithm) {
  const cost::Traffic traffic = traffic_of(call, algorithm);
  return {.size = call.size,
          .wire = Seconds(wire_per_byte(call, algorithm) * call.size.si()),
          .steps = scope_of(call) == Scope::inside ? traffic.node_steps : traffic.network_steps,
          .time = call.time};
}

/// Half of a range over the standard error at `freedom` degrees of freedom:
/// Student's t by Peiser's expansion, see [M80]. That of 95 %: breaks and
/// outliers were chosen by the same rows.
double range95(int freedom) {
  constexpr double z = 1.959963984540054;
  const double f = std::max(freedom, 1);
  return z + (z * z * z + z) / (4 * f) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * f * f);
}

/// Calls that ran the same algorithms, as one fit.
struct Group {
  Scope scope;
  Algorithms algorithms;
  std::vector<TimedCall> calls;
};

/// What the fit of a group writes, one mode at a time.
class ModeWriter {
 public:
  ModeWriter(cost::Profile &profile, const Group &group, const cost::Origin &origin,
             std::string &report, std::vector<std::string> &gaps)
      : profile_(profile), group_(group), origin_(origin), report_(report), gaps_(gaps) {}

  void write() {
    std::vector<CollectiveRow> rows;
    for (const TimedCall &call : group_.calls) rows.push_back(row_of(call, group_.algorithms.bulk));
    const bool several = steps_differ(rows);
    const CollectiveFit fit = fit_regimes(rows, several ? 3 : 5);
    const std::size_t small = small_regimes(fit);
    for (std::size_t i = 0; i < fit.regimes.size(); ++i) {
      if (i > small) break;
      const bool bulk = i == small;
      const Protocol protocol = bulk ? Protocol::simple : i == 0 ? Protocol::ll : Protocol::ll128;
      write_mode(bulk ? group_.algorithms.bulk : group_.algorithms.small, protocol, fit, i);
    }
    if (!fit.outliers.empty())
      report_ += fmt::format("  left out as outliers: {}\n", sizes_text(fit.outliers));
  }

  /// From here on the library has no small protocols, and latency is little of
  /// a call.
  static constexpr Bytes kLargeCall{1024.0 * 1024};

  /// Regimes before the bulk one: two at most.
  std::size_t small_regimes(const CollectiveFit &fit) const {
    if (!cost::has_protocol(group_.algorithms.small, Protocol::ll)) return 0;
    std::size_t count = 0;
    while (count < 2 && count + 1 < fit.regimes.size() && fit.regimes[count].from < kLargeCall)
      ++count;
    return count;
  }

  static std::string sizes_text(const std::vector<Bytes> &sizes) {
    std::string text;
    for (const Bytes size : sizes) text += (text.empty() ? "" : ", ") + text_of(size);
    return text;
  }

 private:
  std::string key(Algorithm algorithm, Protocol protocol, std::string_view what) const {
    return cost::mode_key(group_.scope, algorithm, protocol, what);
  }

  /// The rows of one regime as this algorithm moves them.
  Fit refit(Algorithm algorithm, const CollectiveFit &fit, const Regime &regime) const {
    std::vector<CollectiveRow> rows;
    const Rows used = Rows(fit.rows).subspan(regime.first, regime.rows);
    for (const TimedCall &call : group_.calls)
      if (std::ranges::any_of(used, [&](const CollectiveRow &row) {
            return row.size == call.size && row.time == call.time;
          }))
        rows.push_back(row_of(call, algorithm));
    return fit_line(rows);
  }

  /// Large calls tell no latency: it is what is known of a step, and what they
  /// take longer shows as efficiency.
  Fit with_known_latency(Algorithm algorithm, Fit line, Seconds smallest) const {
    const cost::Traffic traffic = traffic_of(group_.calls[0], algorithm);
    const bool inside = group_.scope == Scope::inside;
    const double steps = inside ? traffic.node_steps : traffic.network_steps;
    const double hop =
        known(inside ? "network.node_hop_latency_s" : "network.hop_latency_s").value_or(0);
    const double others = inside ? 0 : known("network.hop_ratio").value_or(0) * traffic.node_steps;
    const double fixed = known("network.base_latency_s").value_or(0) + hop * (steps + others);
    line.value[1] = steps > 0 ? std::min(fixed, 0.5 * smallest.si()) / steps : 0;
    line.value[2] = 0;
    return line;
  }

  void write_mode(Algorithm algorithm, Protocol protocol, const CollectiveFit &fit,
                  std::size_t at) {
    Fit line = refit(algorithm, fit, fit.regimes[at]);
    const bool blind = fit.rows.front().size >= kLargeCall;
    if (blind) line = with_known_latency(algorithm, line, fit.rows.front().time);
    const cost::Origin origin = {
        origin_.kind, fmt::format("{}: {} rows, rms {:.1f} %, worst {:.1f} %", origin_.source,
                                  line.rows, 100 * line.rms, 100 * line.worst)};
    report_ += fmt::format("{}: {} rows from {}, rms {:.1f} %, worst {:.1f} %\n",
                           key(algorithm, protocol, "*"), line.rows, text_of(fit.regimes[at].from),
                           100 * line.rms, 100 * line.worst);
    const bool bulk = protocol == Protocol::simple;
    write_latency(algorithm, protocol, line, origin);
    write_efficiency(algorithm, protocol, fit, at, line, origin);
    const auto limit = [&](std::string_view what, std::size_t regime) {
      profile_.numbers.erase(key(algorithm, protocol, what));
      if (regime == 0 || regime >= fit.regimes.size()) return;
      const double size = std::sqrt(fit.regimes[regime].from.si() * size_below(fit, regime));
      profile_.numbers[key(algorithm, protocol, what)] = {size, size, size, Factor::latency,
                                                          origin};
    };
    limit("from_B", at);
    limit("below_B", bulk ? 0 : at + 1);
  }

  static double size_below(const CollectiveFit &fit, std::size_t regime) {
    return fit.rows[fit.regimes[regime].first - 1].size.si();
  }

  std::optional<double> known(const std::string &name) const {
    if (!profile_.has(name)) return std::nullopt;
    return profile_.number(name);
  }

  /// Splits the fixed part of a regime into the call's base, steps inside and
  /// steps between.
  void write_latency(Algorithm algorithm, Protocol protocol, const Fit &line,
                     const cost::Origin &origin) {
    const cost::Traffic traffic = traffic_of(group_.calls[0], algorithm);
    const bool inside = group_.scope == Scope::inside;
    const double steps = inside ? traffic.node_steps : traffic.network_steps;
    const double fixed = line.value[1] * steps + line.value[2];
    const double node_hop = std::min(known("network.node_hop_latency_s").value_or(0),
                                     fixed / std::max(traffic.node_steps, 1.0));
    double base = line.value[2];
    double hop = line.value[1];
    double node_part = 0;
    if (base == 0 && inside) {
      // Without a second number of ranks a step of the smallest protocol costs
      // what is known of it.
      if (!base_) base_ = fixed - steps * node_hop;
      base = std::min(*base_, fixed);
      hop = steps > 0 ? (fixed - base) / steps : 0;
    } else if (base == 0) {
      // A step inside costs a known share of one between nodes.
      if (!base_) base_ = known("network.base_latency_s").value_or(0);
      base = std::min(*base_, fixed);
      const double ratio = known("network.hop_ratio").value_or(0);
      hop = (fixed - base) / (steps + ratio * traffic.node_steps);
      node_part = ratio * hop;
    }
    // The error of a step in seconds; the base, where it is fitted, has its
    // own.
    const double hop_error = line.standard_error[1];
    const double base_error = line.value[2] > 0 ? line.standard_error[2] : 0;
    put(key(algorithm, protocol, "base_latency_s"), base, base_error, line, origin);
    put(key(algorithm, protocol, inside ? "node_hop_latency_s" : "hop_latency_s"), hop, hop_error,
        line, origin);
    if (!inside) put(key(algorithm, protocol, "node_hop_latency_s"), node_part, 0, line, origin);
  }

  /// Least relative half-widths: runs of one machine differ by about that much.
  static constexpr double kLeastLatencySpread = 0.05;
  static constexpr double kLeastRateSpread = 0.01;
  static constexpr double kMostRateSpread = 0.5;
  static constexpr double kLeastShare = 1e-5;  ///< profiles hold no less

  void put(const std::string &name, double value, double error, const Fit &line,
           const cost::Origin &origin) {
    const double kept = std::max(value, 0.0);
    const double half = std::max(range95(line.rows - 2) * error, kLeastLatencySpread * kept);
    profile_.numbers[name] = {kept, std::max(kept - half, 0.05 * kept), kept + half,
                              Factor::latency, origin};
  }

  /// Time of the group's first layout at a size, less the first bulk regime's
  /// fixed part: what the bytes take. Later regimes of the same protocol show
  /// as a change of efficiency.
  double bytes_time(const CollectiveFit &fit, std::size_t at, double size,
                    double first_fixed) const {
    std::size_t regime = at;
    while (regime + 1 < fit.regimes.size() && size >= fit.regimes[regime + 1].from.si()) ++regime;
    const auto line = [&](std::size_t i) {
      const VectorXd &value = fit.regimes[i].fit.value;
      const CollectiveRow &row = fit.rows[fit.regimes[i].first];
      return std::pair(value[0] * row.wire.si() / row.size.si(), value[1] * row.steps + value[2]);
    };
    const auto [slope, fixed] = line(regime);
    return fixed - first_fixed + slope * size;
  }

  void write_efficiency(Algorithm algorithm, Protocol protocol, const CollectiveFit &fit,
                        std::size_t at, const Fit &line, const cost::Origin &origin) {
    const TimedCall &call = group_.calls[0];
    const bool blind = fit.rows.front().size >= kLargeCall;
    const bool curved = protocol == Protocol::simple && (blind || at + 1 < fit.regimes.size());
    const Fit &level = curved ? fit.regimes.back().fit : line;  // of what large calls reach
    const double error = std::clamp(
        range95(level.rows - 2) * level.standard_error[0] / std::max(level.value[0], 1e-30),
        kLeastRateSpread, kMostRateSpread);
    const double from = fit.regimes[at].from.si();
    const double wire = wire_per_byte(call, algorithm);
    std::vector<std::array<double, 2>> points;
    const auto add = [&](double size, double seconds_per_byte) {
      const double piece = cost::piece_of(algorithm, Bytes(size), call.layout).si();
      points.push_back(
          {piece, seconds_per_byte > 0 ? std::max(wire / seconds_per_byte, kLeastShare) : 1.0});
    };
    if (!curved) {
      add(from, line.value[0] * wire);
    } else {
      const double last = fit.rows.back().size.si();
      const double steps = fit.rows[fit.regimes[at].first].steps;
      const double fixed = line.value[1] * steps + line.value[2];
      for (double size = from; size <= last * 1.0001; size *= std::sqrt(2.0))
        add(size, bytes_time(fit, at, size, fixed) / size);
    }
    write_shares(algorithm, protocol, points, wire, error, origin);
  }

  /// A large call is bound by the node's links where these alone, at what is
  /// known of them, take nearly as long; else by the NICs. The other kind keeps
  /// what is known of it.
  static constexpr double kBound = 0.9;
  void write_shares(Algorithm algorithm, Protocol protocol,
                    std::vector<std::array<double, 2>> points, double wire, double error,
                    const cost::Origin &origin) {
    const TimedCall &call = group_.calls[0];
    const cost::Traffic traffic = traffic_of(call, algorithm);
    const bool inside = group_.scope == Scope::inside;
    const double node_wire =
        call.rates.node_link.si() > 0 ? traffic.node_link / call.rates.node_link.si() : 0;
    const double known_share = node_share(algorithm);
    std::vector<std::array<double, 2>> node_points;
    const bool node_bound =
        !inside && node_wire / known_share >= kBound * wire / points.back()[1] && node_wire > 0;
    bool above = false;
    for (auto &[piece, share] : points) {
      node_points.push_back(
          {piece, node_bound ? std::min(node_wire / wire * share, 1.0) : known_share});
      if (node_bound) share = std::max(share, profile_.number("network.efficiency"));
      above |= protocol == Protocol::simple && share > 1.05;
      share = std::min(share, 1.0);
    }
    if (above)
      gaps_.push_back(fmt::format("{}: faster than the line rate of the links given; held at it",
                                  key(algorithm, protocol, "efficiency")));
    set_curve(key(algorithm, protocol, "efficiency"), points, error, origin);
    if (!inside) set_curve(key(algorithm, protocol, "node_efficiency"), node_points, error, origin);
  }

  /// What calls inside a node reach on its links with the nearest algorithm.
  double node_share(Algorithm algorithm) const {
    const Algorithm same = algorithm == Algorithm::nvls_tree ? Algorithm::nvls
                           : algorithm == Algorithm::tree    ? Algorithm::ring
                                                             : algorithm;
    for (const Algorithm candidate : {same, Algorithm::ring}) {
      const auto curve = profile_.curves.find(
          cost::mode_key(Scope::inside, candidate, Protocol::simple, "efficiency"));
      if (curve != profile_.curves.end()) return curve->second.points.back()[1];
    }
    return known("network.node_efficiency").value_or(1);
  }

  void set_curve(const std::string &name, std::vector<std::array<double, 2>> points, double error,
                 const cost::Origin &origin) {
    const double high = std::min(1 + error, 1e6);
    // A line of one share needs one point.
    const double first = points[0][1];
    if (std::ranges::all_of(points, [&](const auto &p) { return p[1] == first; })) points.resize(1);
    profile_.curves[name] = {.x = "piece_B",
                             .y = "share_of_line_rate",
                             .points = std::move(points),
                             .low_factor = 1 - error,
                             .high_factor = high,
                             .factor = Factor::network,
                             .origin = origin};
  }

  cost::Profile &profile_;
  const Group &group_;
  const cost::Origin &origin_;
  std::string &report_;
  std::vector<std::string> &gaps_;
  std::optional<double> base_;  ///< of the smallest regime
};

/// Calls by scope and algorithms; inside comes first, and small groups before
/// large ones, so that of two that tell the same mode the larger stays.
std::vector<Group> groups_of(const cost::Profile &profile, const std::vector<TimedCall> &calls) {
  std::optional<int> nvls_ranks;
  if (profile.has("network.nvls_ranks"))
    nvls_ranks = static_cast<int>(profile.number("network.nvls_ranks"));
  std::map<std::tuple<Scope, Algorithms>, Group> groups;
  for (const TimedCall &call : calls) {
    Algorithms algorithms = algorithms_of(call.kind, call.layout, nvls_ranks);
    if (call.algorithm) algorithms.bulk = *call.algorithm;
    if (!cost::traffic_of(algorithms.bulk, call.kind, call.layout)) continue;
    Group &group = groups.try_emplace({scope_of(call), algorithms}).first->second;
    group.scope = scope_of(call);
    group.algorithms = algorithms;
    group.calls.push_back(call);
  }
  std::vector<Group> list;
  for (auto &[key, group] : groups) list.push_back(std::move(group));
  std::ranges::stable_sort(list, [](const Group &a, const Group &b) {
    return std::tuple(a.scope, a.calls.size()) < std::tuple(b.scope, b.calls.size());
  });
  return list;
}

/// [M125] Calls too few for a fit move the efficiency of the bulk mode by one
/// factor, so that half of them are predicted too fast and half too slow;
/// latencies stay. An unknown mode begins at 1.
void scale_mode(cost::Profile &profile, const Group &group, const cost::Origin &origin) {
  const Algorithm bulk = group.algorithms.bulk;
  const auto key = [&](std::string_view what) {
    return cost::mode_key(group.scope, bulk, Protocol::simple, what);
  };
  for (const char *what : {"efficiency", "node_efficiency"})
    if (group.scope == Scope::between || std::string_view(what) == "efficiency")
      profile.curves.try_emplace(key(what), cost::Curve{.x = "piece_B",
                                                        .y = "share_of_line_rate",
                                                        .points = {{1, 1}},
                                                        .low_factor = 0.9,
                                                        .high_factor = 1.1,
                                                        .factor = Factor::network,
                                                        .origin = {}});
  std::vector<double> factors;
  for (TimedCall call : group.calls) {
    call.algorithm = bulk;
    const Seconds predicted = predicted_alone(profile, call);
    call.size = Bytes(0);
    const Seconds latency = std::min(predicted_alone(profile, call), 0.9 * call.time);
    factors.push_back((predicted - latency) / (call.time - latency));
  }
  std::ranges::sort(factors);
  const double factor = factors[factors.size() / 2];
  for (const char *what : {"efficiency", "node_efficiency"}) {
    const auto curve = profile.curves.find(key(what));
    if (curve == profile.curves.end()) continue;
    for (auto &point : curve->second.points) point[1] = std::clamp(point[1] * factor, 1e-5, 1.0);
    curve->second.origin = {origin.kind,
                            fmt::format("{}: level of {} calls", origin.source, factors.size())};
  }
}

/// What a profile says of calls it has no mode for: as the ring does, else any
/// mode.
void set_plain_numbers(cost::Profile &profile, const Group &group, const cost::Origin &origin) {
  const Algorithm bulk = group.algorithms.bulk;
  const auto copy = [&](std::string_view what, const char *to) {
    const auto from =
        profile.numbers.find(cost::mode_key(group.scope, bulk, Protocol::simple, what));
    if (from != profile.numbers.end()) profile.numbers[to] = from->second;
  };
  const auto &curve =
      profile.curve(cost::mode_key(group.scope, bulk, Protocol::simple, "efficiency"));
  const double share = curve.points.back()[1];
  const cost::Number number = {share, share * curve.low_factor,
                               std::min(share * curve.high_factor, 1.0), Factor::network, origin};
  if (group.scope == Scope::inside && bulk == Algorithm::ring) {
    profile.numbers["network.node_efficiency"] = number;
  } else if (group.scope == Scope::between &&
             (bulk == Algorithm::ring ||
              !profile.curves.contains(cost::mode_key(Scope::between, Algorithm::ring,
                                                      Protocol::simple, "efficiency")))) {
    for (const char *key : {"network.transport_cap_Bps", "network.small_below_B",
                            "network.small_efficiency", "network.small_hop_latency_s"})
      profile.numbers.erase(key);
    profile.numbers["network.efficiency"] = number;
    copy("hop_latency_s", "network.hop_latency_s");
  }
}

}  // namespace

void fit_modes(cost::Profile &profile, const std::vector<TimedCall> &calls,
               const cost::Origin &origin, std::string &report, std::vector<std::string> &gaps) {
  for (const Group &group : groups_of(profile, calls)) {
    std::vector<CollectiveRow> rows;
    for (const TimedCall &call : group.calls) rows.push_back(row_of(call, group.algorithms.bulk));
    if (rows.size() < kFewest || !tell_latency(rows)) {
      gaps.push_back(
          fmt::format("{} calls that ran {} {}: too few or too alike in size for "
                      "latencies; they set the "
                      "efficiency",
                      rows.size(), name_of(group.algorithms.bulk),
                      group.scope == Scope::inside ? "inside a node" : "between nodes"));
      scale_mode(profile, group, origin);
    } else {
      ModeWriter(profile, group, origin, report, gaps).write();
    }
    set_plain_numbers(profile, group, origin);
  }
}

Seconds predicted_alone(const cost::Profile &profile, const TimedCall &call) {
  std::vector<cost::Mode> modes = cost::modes_of(&profile, call.kind, call.size, call.layout);
  const auto runs_it = [&](const cost::Mode &m) { return m.algorithm == call.algorithm; };
  if (call.algorithm && std::ranges::any_of(modes, runs_it)) {
    std::erase_if(modes, std::not_fn(runs_it));
    if (std::ranges::none_of(modes, &cost::Mode::offered))
      for (cost::Mode &mode : modes) mode.offered = mode.protocol == Protocol::simple;
  }
  Seconds fastest(std::numeric_limits<double>::infinity());
  for (const cost::Mode &mode : modes) {
    const auto traffic = cost::traffic_of(mode.algorithm, call.kind, call.layout);
    if (mode.offered && traffic)
      fastest = std::min(fastest, cost::time_alone(*traffic, mode.terms, call.size, call.rates));
  }
  return fastest;
}

namespace {

/// All-reduces that are about to be fitted replace what a base profile says of
/// every algorithm they may have run; else a mode of another machine might
/// still look faster.
void forget_fitted_scopes(cost::Profile &profile, const std::vector<TimedCall> &calls) {
  for (const Scope scope : {Scope::inside, Scope::between}) {
    std::vector<CollectiveRow> rows;
    for (const TimedCall &call : calls)
      if (call.kind == CollectiveKind::all_reduce && scope_of(call) == scope)
        rows.push_back(row_of(call, Algorithm::ring));
    if (rows.size() < kFewest || !tell_latency(rows)) continue;
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::tree, Algorithm::nvls, Algorithm::nvls_tree})
      for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
        const std::string prefix = cost::mode_key(scope, algorithm, protocol, "");
        const auto of_mode = [&](const auto &entry) { return entry.first.starts_with(prefix); };
        std::erase_if(profile.numbers, of_mode);
        std::erase_if(profile.curves, of_mode);
      }
  }
}

}  // namespace

void fit_collectives(cost::Profile &profile, const std::vector<CollectiveSample> &samples,
                     const spec::Cluster &cluster, const std::string &source, std::string &report,
                     std::vector<std::string> &gaps) {
  std::vector<TimedCall> calls;
  int unusable = 0;
  for (const CollectiveSample &sample : samples) {
    const int per_node =
        sample.ranks_per_node.value_or(std::min(sample.ranks, cluster.gpus_per_node));
    const bool usable = !sample.in_training && sample.ranks >= 2 && per_node >= 1 &&
                        per_node <= cluster.gpus_per_node && sample.ranks % per_node == 0 &&
                        sample.time > Seconds(0) && sample.size > Bytes(0);
    if (!usable) {
      ++unusable;
      continue;
    }
    const int nics = std::max(1, cluster.nics_per_node * per_node / cluster.gpus_per_node);
    calls.push_back(
        {.kind = sample.kind,
         .layout = {.ranks = sample.ranks, .nodes = sample.ranks / per_node, .nics_per_node = nics},
         .rates = {.node_link = cluster.node_link_bandwidth, .nic = cluster.nic_bandwidth},
         .size = sample.size,
         .time = sample.time,
         .algorithm = find_named<Algorithm>(sample.algorithm)});
  }
  if (unusable > 0)
    gaps.push_back(
        fmt::format("{} collective samples not used: timed inside a "
                    "training step, or a layout the "
                    "cluster does not have",
                    unusable));
  if (std::ranges::none_of(calls, [](const auto &call) { return call.layout.nodes > 1; }))
    gaps.push_back("network.*: no samples between nodes; the base profile's numbers stay");
  forget_fitted_scopes(profile, calls);
  fit_modes(profile, calls, {Provenance::imported, source}, report, gaps);
}

}  // namespace scapesim::calib
