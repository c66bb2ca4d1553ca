// SPDX-License-Identifier: Apache-2.0
#include "calib/collective_modes.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "sim/base/unit_text.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Scope;
using Eigen::VectorXd;
using graph::Algorithm;
using graph::CollectiveKind;
using graph::Protocol;

namespace {

cost::Traffic traffic_of(const TimedCall& call, Algorithm algorithm) {
  return cost::traffic_of(algorithm, call.kind, call.layout).value_or(cost::Traffic{});
}

/// Time per byte of size at full line rate: of the NIC between nodes, of the
/// node link inside.
double wire_per_byte(const TimedCall& call, Algorithm algorithm) {
  const cost::Traffic traffic = traffic_of(call, algorithm);
  return scope_of(call) == Scope::inside ? traffic.node_link / call.rates.node_link.si()
                                         : traffic.nic / call.rates.nic.si();
}

}  // namespace

// [M123]
Algorithms algorithms_of(CollectiveKind kind, const cost::Layout& layout,
                         std::optional<int> nvls_ranks) {
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv)
    return {Algorithm::pairwise, Algorithm::pairwise};
  if (kind != CollectiveKind::all_reduce) return {Algorithm::ring, Algorithm::ring};
  const bool nvls = nvls_ranks && layout.ranks / layout.nodes >= *nvls_ranks;
  if (layout.nodes == 1) return {nvls ? Algorithm::nvls : Algorithm::ring, Algorithm::ring};
  if (layout.nodes > 2) return {Algorithm::ring, Algorithm::tree};
  return {nvls ? Algorithm::nvls_tree : Algorithm::tree, Algorithm::tree};
}

Scope scope_of(const TimedCall& call) {
  return call.layout.nodes == 1 ? Scope::inside : Scope::between;
}

CollectiveRow row_of(const TimedCall& call, Algorithm algorithm) {
  const cost::Traffic traffic = traffic_of(call, algorithm);
  return {.size = call.size,
          .wire = Seconds(wire_per_byte(call, algorithm) * call.size.si()),
          .steps = scope_of(call) == Scope::inside ? traffic.node_steps : traffic.network_steps,
          .time = call.time};
}

namespace {

/// Half of a range over the standard error at `freedom` degrees of freedom:
/// Student's t by Peiser's expansion, see [M80]. That of 95 %: breaks and
/// outliers were chosen by the same rows.
double range95(int freedom) {
  constexpr double z = 1.959963984540054;
  const double f = std::max(freedom, 1);
  return z + (z * z * z + z) / (4 * f) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * f * f);
}

/// What the fit of a group writes, one mode at a time.
class ModeWriter {
 public:
  ModeWriter(cost::Profile& profile, const Group& group, const cost::Origin& origin,
             std::string& report, std::vector<std::string>& gaps)
      : profile_(profile), group_(group), origin_(origin), report_(report), gaps_(gaps) {}

  void write() {
    std::vector<CollectiveRow> rows;
    for (const TimedCall& call : group_.calls) rows.push_back(row_of(call, group_.algorithms.bulk));
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
  std::size_t small_regimes(const CollectiveFit& fit) const {
    if (!cost::has_protocol(group_.algorithms.small, Protocol::ll)) return 0;
    std::size_t count = 0;
    while (count < 2 && count + 1 < fit.regimes.size() && fit.regimes[count].from < kLargeCall)
      ++count;
    return count;
  }

  static std::string sizes_text(const std::vector<Bytes>& sizes) {
    std::string text;
    for (const Bytes size : sizes) text += (text.empty() ? "" : ", ") + text_of(size);
    return text;
  }

 private:
  std::string key(Algorithm algorithm, Protocol protocol, std::string_view what) const {
    return cost::mode_key(group_.scope, algorithm, protocol, what);
  }

  /// The rows of one regime as this algorithm moves them.
  Fit refit(Algorithm algorithm, const CollectiveFit& fit, const Regime& regime) const {
    std::vector<CollectiveRow> rows;
    const Rows used = Rows(fit.rows).subspan(regime.first, regime.rows);
    for (const TimedCall& call : group_.calls)
      if (std::ranges::any_of(used, [&](const CollectiveRow& row) {
            return row.size == call.size && row.time == call.time;
          }))
        rows.push_back(row_of(call, algorithm));
    return fit_line(rows);
  }

  /// Large calls of one number of ranks.
  static bool is_blind(const CollectiveFit& fit) {
    return fit.rows.front().size >= kLargeCall && !steps_differ(fit.rows);
  }

  /// These tell no latency: it is what is known of a step, and what they
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

  void write_mode(Algorithm algorithm, Protocol protocol, const CollectiveFit& fit,
                  std::size_t at) {
    Fit line = refit(algorithm, fit, fit.regimes[at]);
    const bool blind = is_blind(fit);
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

  static double size_below(const CollectiveFit& fit, std::size_t regime) {
    return fit.rows[fit.regimes[regime].first - 1].size.si();
  }

  std::optional<double> known(const std::string& name) const {
    if (!profile_.has(name)) return std::nullopt;
    return profile_.number(name);
  }

  /// Splits the fixed part of a regime into the call's base, steps inside and
  /// steps between.
  void write_latency(Algorithm algorithm, Protocol protocol, const Fit& line,
                     const cost::Origin& origin) {
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

  void put(const std::string& name, double value, double error, const Fit& line,
           const cost::Origin& origin) {
    const double kept = std::max(value, 0.0);
    const double half = std::max(range95(line.rows - 2) * error, kLeastLatencySpread * kept);
    profile_.numbers[name] = {kept, std::max(kept - half, 0.05 * kept), kept + half,
                              Factor::latency, origin};
  }

  /// Time of the group's first layout at a size, less the first bulk regime's
  /// fixed part: what the bytes take. Later regimes of the same protocol show
  /// as a change of efficiency.
  double bytes_time(const CollectiveFit& fit, std::size_t at, double size,
                    double first_fixed) const {
    std::size_t regime = at;
    while (regime + 1 < fit.regimes.size() && size >= fit.regimes[regime + 1].from.si()) ++regime;
    const auto line = [&](std::size_t i) {
      const VectorXd& value = fit.regimes[i].fit.value;
      const CollectiveRow& row = fit.rows[fit.regimes[i].first];
      return std::pair(value[0] * row.wire.si() / row.size.si(), value[1] * row.steps + value[2]);
    };
    const auto [slope, fixed] = line(regime);
    return fixed - first_fixed + slope * size;
  }

  void write_efficiency(Algorithm algorithm, Protocol protocol, const CollectiveFit& fit,
                        std::size_t at, const Fit& line, const cost::Origin& origin) {
    const TimedCall& call = group_.calls[0];
    const bool blind = is_blind(fit);
    const bool curved = protocol == Protocol::simple && (blind || at + 1 < fit.regimes.size());
    const Fit& level = curved ? fit.regimes.back().fit : line;  // of what large calls reach
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
                    const cost::Origin& origin) {
    const TimedCall& call = group_.calls[0];
    const cost::Traffic traffic = traffic_of(call, algorithm);
    const bool inside = group_.scope == Scope::inside;
    const double node_wire =
        call.rates.node_link.si() > 0 ? traffic.node_link / call.rates.node_link.si() : 0;
    const double known_share = node_share(algorithm);
    std::vector<std::array<double, 2>> node_points;
    const bool node_bound =
        !inside && node_wire / known_share >= kBound * wire / points.back()[1] && node_wire > 0;
    bool above = false;
    for (auto& [piece, share] : points) {
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

  void set_curve(const std::string& name, std::vector<std::array<double, 2>> points, double error,
                 const cost::Origin& origin) {
    const double high = std::min(1 + error, 1e6);
    // A line of one share needs one point.
    const double first = points[0][1];
    if (std::ranges::all_of(points, [&](const auto& p) { return p[1] == first; })) points.resize(1);
    profile_.curves[name] = {.x = "piece_B",
                             .y = "share_of_line_rate",
                             .points = std::move(points),
                             .low_factor = 1 - error,
                             .high_factor = high,
                             .factor = Factor::network,
                             .origin = origin};
  }

  cost::Profile& profile_;
  const Group& group_;
  const cost::Origin& origin_;
  std::string& report_;
  std::vector<std::string>& gaps_;
  std::optional<double> base_;  ///< of the smallest regime
};

}  // namespace

void write_modes(cost::Profile& profile, const Group& group, const cost::Origin& origin,
                 std::string& report, std::vector<std::string>& gaps) {
  ModeWriter(profile, group, origin, report, gaps).write();
}

}  // namespace scapesim::calib
