// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/collectives.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <tuple>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/plan/algorithms.hpp"
#include "sim/plan/link_classes.hpp"
#include "sim/plan/lower_bound.hpp"

namespace scapesim::plan {

namespace {

using cost::Mode;
using graph::Algorithm;
using graph::CollectiveKind;
using topology::LinkKind;

/// The fullest of equal links.
struct Peak {
  LinkKind kind = LinkKind::lane;
  BytesPerSecond capacity;
  double flows = 0;
};

std::vector<Peak> peaks_of(const Sheet& sheet) {
  std::map<std::pair<LinkKind, BytesPerSecond>, std::uint64_t> most;
  const topology::Link* last = nullptr;
  std::uint64_t* peak = nullptr;
  for (std::uint32_t i = 0; i < sheet.flows().size(); ++i) {
    if (sheet.flows()[i] == 0) continue;
    const topology::Link& link = sheet.fabric().link({i});
    if (last == nullptr || last->kind != link.kind || last->capacity != link.capacity)
      peak = &most[{link.kind, link.capacity}];
    last = &link;
    *peak = std::max(*peak, sheet.flows()[i]);
  }
  std::vector<Peak> list;
  for (const auto& [key, flows] : most)
    list.push_back({key.first, key.second, static_cast<double>(flows)});
  return list;
}

/// A stage on the fabric.
struct LaidStage {
  Stage stage;
  std::vector<Peak> peaks;
};
using Laid = std::vector<LaidStage>;

/// What a call needs of a kind's pattern: an all-reduce by rings is twice an all-gather.
struct Likeness {
  CollectiveKind kind;
  double times = 1;
};
Likeness likeness(Algorithm algorithm, CollectiveKind kind) {
  const bool passes = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
  if (algorithm != Algorithm::ring || !passes) return {kind};
  return {CollectiveKind::all_gather, kind == CollectiveKind::all_reduce ? 2.0 : 1.0};
}

/// One way to run a call: a mode and where its stages lie.
struct Choice {
  Mode mode;
  Laid* laid = nullptr;
  double times = 1;
};

/// The rate of a unit alone, and whether it is set inside nodes.
struct Rate {
  BytesPerSecond rate;
  bool inside = false;
};
Rate rate_alone(const LaidStage& laid, const NetworkTerms& terms) {
  Rate slowest{BytesPerSecond(1e300), false};
  for (const Peak& peak : laid.peaks) {
    const BytesPerSecond line = usable(peak.kind, peak.capacity, terms) / peak.flows;
    if (line < slowest.rate) slowest = {line, is_inside(peak.kind)};
  }
  return slowest;
}

/// What a byte of a hop takes with these terms: while all rings move, or the hop's own only.
enum class Moving { all, own };
double seconds_per_byte(const HopClass& hop, Moving moving, const NetworkTerms& terms) {
  const auto of = [&](const HopClass::Part& part) {
    return moving == Moving::all ? part.all_s_per_B : part.own_s_per_B;
  };
  const double capped = terms.transport_cap.si() > 0 ? hop.nic_flows / terms.transport_cap.si() : 0;
  return std::max(
      {of(hop.inside) / terms.node_efficiency, of(hop.outside) / terms.efficiency, capped});
}

/// [M140] A ring's step waits for its slowest link, or for a lap's mean of bytes and latency: both
/// go on at once, so what is paid on top of the bytes is the rest.
Seconds ring_latency(const Stage& stage, double times, Bytes unit, BytesPerSecond rate,
                     const NetworkTerms& terms) {
  const double steps = times * stage.ring_steps;
  const Bytes chunk = unit / steps;
  const Seconds network = stage.sheet.fabric_latency();
  Seconds longest;
  for (const RingClass& ring : stage.rings) {
    Seconds slowest, lap, last;
    double hops = 0;
    for (const auto& [hop, count] : ring) {
      const Seconds latency = hop.between_nodes ? network : terms.node_hop_latency;
      slowest = std::max(slowest, Seconds(chunk.si() * seconds_per_byte(hop, Moving::all, terms)));
      last = std::max(last, latency);
      lap += count * (Seconds(chunk.si() * seconds_per_byte(hop, Moving::own, terms)) + latency);
      hops += count;
    }
    longest = std::max({longest, steps * slowest + last, steps * (lap / hops)});
  }
  return std::max(Seconds(0), longest - unit / rate);
}

Seconds latency_of(const LaidStage& laid, const Choice& choice, Bytes size) {
  const NetworkTerms& terms = choice.mode.terms;
  const Stage& stage = laid.stage;
  // A profile's latency was fitted as what is paid on top of the bytes.
  if (!stage.rings.empty() && !terms.hop_latency)
    return ring_latency(stage, choice.times, unit_of(stage, choice.times, size),
                        rate_alone(laid, terms).rate, terms);
  const Seconds network = terms.hop_latency.value_or(stage.sheet.fabric_latency());
  return choice.times *
         (stage.steps_between * network + stage.steps_inside * terms.node_hop_latency);
}

/// [M150] Latencies and bytes of all stages at the rate they have alone.
Seconds time_alone(const Choice& choice, Bytes size) {
  Seconds time = choice.mode.terms.base_latency;
  for (const LaidStage& laid : *choice.laid)
    time += latency_of(laid, choice, size) +
            unit_of(laid.stage, choice.times, size) / rate_alone(laid, choice.mode.terms).rate;
  return time;
}

std::string_view obstacle(const Site& site, const CollectiveCall& call, Algorithm algorithm) {
  const AlgorithmRow& row = row_of(algorithm);
  if (std::ranges::find(row.kinds, call.kind) == row.kinds.end())
    return "it does not run this kind of collective";
  return row.obstacle(site, call.kind);
}

void refuse(const CollectiveCall& call, const std::string& key, const std::string& what) {
  throw InputError(Problem{{}, key, fmt::format("{}: {}", call.name, what), ""});
}

/// What the call may run as: the profile's modes that fit, or what is forced.
std::vector<Mode> modes_for(const CollectiveCall& call, const Site& site,
                            const cost::Layout& layout) {
  std::vector<Mode> known;
  if (call.profile != nullptr)
    known = cost::modes_of(call.profile, call.kind, call.size, layout);
  else
    known = {{.algorithm = default_algorithm(call.kind), .terms = call.terms}};
  const auto is_simple = [](const Mode& mode) { return mode.protocol == graph::Protocol::simple; };
  const auto bulk = std::ranges::find_if(known, is_simple);
  const Mode first = bulk == known.end() ? known.front() : *bulk;
  const std::string_view why =
      call.algorithm ? obstacle(site, call, *call.algorithm) : std::string_view();
  if (!why.empty() && call.forcing == Forcing::strict)
    refuse(call, "algorithm", fmt::format("{} cannot run: {}", name_of(*call.algorithm), why));
  if (call.algorithm && why.empty()) {
    std::erase_if(known, [&](const Mode& mode) { return mode.algorithm != *call.algorithm; });
    // Not in the profile, or for small sizes only: the links as its large calls use them.
    const bool of_this_size = std::ranges::any_of(
        known, [&](const Mode& mode) { return mode.offered || is_simple(mode); });
    if (!of_this_size && !call.protocol) known.clear();
    if (known.empty()) known = {{*call.algorithm, first.protocol, first.terms}};
  }
  std::erase_if(known,
                [&](const Mode& mode) { return !obstacle(site, call, mode.algorithm).empty(); });
  if (known.empty()) known = {{default_algorithm(call.kind), first.protocol, first.terms}};
  const bool any_offered = std::ranges::any_of(known, &Mode::offered);
  if (!call.protocol && any_offered)
    std::erase_if(known, [](const Mode& mode) { return !mode.offered; });
  // Forced where the library would take another algorithm: its large sizes run Simple.
  if (!call.protocol && !any_offered && std::ranges::any_of(known, is_simple))
    std::erase_if(known, std::not_fn(is_simple));
  const auto has_protocol = [&](const Mode& mode) { return mode.protocol == *call.protocol; };
  if (!call.protocol) return known;
  if (call.forcing == Forcing::where_possible && std::ranges::none_of(known, has_protocol))
    return known;
  std::erase_if(known, [&](const Mode& mode) { return mode.protocol != *call.protocol; });
  if (known.empty())
    refuse(call, "protocol", fmt::format("the profile has no {} for it", name_of(*call.protocol)));
  return known;
}

graph::Phase phase_of(const LaidStage& laid, const Choice& choice, Bytes size, std::size_t column,
                      ResourceTable& resources) {
  const bool inside = rate_alone(laid, choice.mode.terms).inside;
  const double lead = inside ? laid.stage.inside_lead : laid.stage.outside_lead;
  return {.latency = latency_of(laid, choice, size),
          .bytes = unit_of(laid.stage, choice.times, size) * lead,
          .rate_cap = {},
          .loads = resources.loads(column, choice.mode.terms, lead)};
}

/// Columns of the stages that are used, in order of first use.
class Columns {
 public:
  explicit Columns(const topology::Fabric& fabric) : classes_(fabric) {}
  void add(const Laid& laid) {
    for (const LaidStage& stage : laid) {
      const auto [entry, is_new] = columns_.try_emplace(&stage);
      if (is_new) entry->second = classes_.refine(stage.stage.sheet.flows());
    }
  }
  std::size_t of(const LaidStage& stage) const { return columns_.at(&stage); }
  const LinkClasses& classes() const { return classes_; }

 private:
  LinkClasses classes_;
  std::map<const LaidStage*, std::size_t> columns_;
};

}  // namespace

/// Lays calls on demand; equal patterns of a set once.
class Drawer {
 public:
  Drawer(const topology::Fabric& fabric, const std::vector<GroupSet>& sets)
      : fabric_(fabric), sets_(sets), sites_(sets.size()), ways_out_(sets.size()) {}

  const topology::Fabric& fabric() const { return fabric_; }
  int ranks(std::size_t set) const { return static_cast<int>(sets_.at(set).groups.front().size()); }
  const Site& site(std::size_t set) {
    if (!sites_.at(set)) sites_[set].emplace(site_of(fabric_, sets_[set]));
    return *sites_[set];
  }
  std::span<const topology::Link> way_out(std::size_t set) {
    if (!ways_out_.at(set)) ways_out_[set] = plan::way_out(site(set));
    return *ways_out_[set];
  }
  Choice draw(const CollectiveCall& call, const Mode& mode) {
    const auto [kind, times] = likeness(mode.algorithm, call.kind);
    const auto [entry, is_new] =
        laid_.try_emplace({call.group, mode.algorithm, kind, call.peer_shares});
    if (is_new) {
      CollectiveCall like = call;
      like.kind = kind;
      for (Stage& stage : row_of(mode.algorithm).lay(site(call.group), like, Sheet::Keep::flows)) {
        std::vector<Peak> peaks = peaks_of(stage.sheet);
        entry->second.push_back({std::move(stage), std::move(peaks)});
      }
    }
    return {mode, &entry->second, times};
  }

 private:
  const topology::Fabric& fabric_;
  const std::vector<GroupSet>& sets_;
  std::vector<std::optional<Site>> sites_;
  std::vector<std::optional<std::vector<topology::Link>>> ways_out_;
  std::map<std::tuple<std::size_t, Algorithm, CollectiveKind, std::vector<double>>, Laid> laid_;
};

namespace {

/// The mode that is fastest alone.
Choice fastest(const CollectiveCall& call, Drawer& drawer) {
  const Site& site = drawer.site(call.group);
  std::optional<Choice> best;
  Seconds least;
  for (const Mode& mode : modes_for(call, site, layout_of(site))) {
    const Choice choice = drawer.draw(call, mode);
    const Seconds time = time_alone(choice, call.size);
    if (best && time >= least) continue;
    best = choice;
    least = time;
  }
  return *best;
}

/// Choices of a plan; calls that differ in their names only are chosen for once.
class Choices {
 public:
  explicit Choices(Drawer& drawer) : drawer_(drawer) {}
  Choice operator()(const CollectiveCall& call) {
    if (call.profile == nullptr || !call.peer_shares.empty()) return fastest(call, drawer_);
    const auto [entry, is_new] = known_.try_emplace(
        {call.group, call.kind, call.size, call.profile, call.algorithm, call.protocol});
    if (is_new) entry->second = fastest(call, drawer_);
    return entry->second;
  }

 private:
  using Key = std::tuple<std::size_t, CollectiveKind, Bytes, const cost::Profile*,
                         std::optional<Algorithm>, std::optional<graph::Protocol>>;
  Drawer& drawer_;
  std::map<Key, Choice> known_;
};

graph::Collective collective_of(const CollectiveCall& call, const std::optional<Choice>& choice,
                                const Columns& columns, ResourceTable& resources) {
  graph::Collective collective;
  collective.name = call.name;
  collective.kind = call.kind;
  collective.bytes = call.size;
  collective.members = call.members;
  if (!choice) return collective;
  collective.algorithm = name_of(choice->mode.algorithm);
  collective.protocol = name_of(choice->mode.protocol);
  for (const LaidStage& laid : *choice->laid)
    collective.phases.push_back(phase_of(laid, *choice, call.size, columns.of(laid), resources));
  collective.phases.front().latency += choice->mode.terms.base_latency;
  return collective;
}

}  // namespace

CollectivePlanner::CollectivePlanner(const topology::Fabric& fabric,
                                     const std::vector<GroupSet>& sets)
    : drawer_(std::make_unique<Drawer>(fabric, sets)) {}
CollectivePlanner::~CollectivePlanner() = default;

NetworkPlan CollectivePlanner::plan(const std::vector<CollectiveCall>& calls) {
  Choices choose(*drawer_);
  Columns columns(drawer_->fabric());
  std::vector<std::optional<Choice>> choices;
  for (const CollectiveCall& call : calls) {
    SCAPESIM_CHECK(drawer_->ranks(call.group) > 0, "{}: empty group", call.name);
    std::optional<Choice>& choice = choices.emplace_back();
    if (drawer_->ranks(call.group) == 1) continue;
    choice = choose(call);
    columns.add(*choice->laid);
  }
  ResourceTable resources(columns.classes());
  NetworkPlan plan;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    graph::Collective& collective =
        plan.collectives.emplace_back(collective_of(calls[i], choices[i], columns, resources));
    collective.group_size = drawer_->ranks(calls[i].group);
    if (choices[i])
      collective.lower_bound =
          lower_bound(drawer_->site(calls[i].group), drawer_->way_out(calls[i].group), calls[i],
                      choices[i]->mode);
  }
  plan.resources = resources.take();
  return plan;
}

NetworkPlan plan_collectives(const topology::Fabric& fabric, const std::vector<GroupSet>& sets,
                             const std::vector<CollectiveCall>& calls) {
  return CollectivePlanner(fabric, sets).plan(calls);
}

CollectiveCall forced(CollectiveCall call, const spec::Collectives& collectives) {
  const spec::ForcedCollective* of_kind = spec::of_kind(collectives, name_of(call.kind));
  if (of_kind == nullptr) return call;
  call.algorithm = of_kind->algorithm;
  call.protocol = of_kind->protocol;
  call.forcing = Forcing::where_possible;
  return call;
}

std::vector<Drawn> drawn_calls(const topology::Fabric& fabric, const std::vector<GroupSet>& sets,
                               const std::vector<CollectiveCall>& calls, Sheet::Keep keep) {
  Drawer drawer(fabric, sets);
  std::vector<Drawn> list;
  for (const CollectiveCall& call : calls) {
    Drawn& drawn = list.emplace_back();
    if (sets.at(call.group).groups.front().size() == 1) continue;
    const Choice choice = fastest(call, drawer);
    const auto [kind, times] = likeness(choice.mode.algorithm, call.kind);
    CollectiveCall like = call;
    like.kind = kind;
    drawn.mode = choice.mode;
    drawn.times = times;
    drawn.stages = row_of(choice.mode.algorithm).lay(drawer.site(call.group), like, keep);
  }
  return list;
}

cost::Layout layout_of(const Site& site) {
  return {.ranks = site.ranks, .nodes = site.nodes, .nics_per_node = site.rails};
}

cost::Layout layout_of(const topology::Fabric& fabric, const GroupSet& set) {
  return layout_of(site_of(fabric, set));
}

Group consecutive_gpus(int count) {
  Group group(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < group.size(); ++i) group[i].value = static_cast<std::uint32_t>(i);
  return group;
}

}  // namespace scapesim::plan
