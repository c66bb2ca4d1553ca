// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/longest_path.hpp"

#include <algorithm>
#include <set>

#include "sim/base/check.hpp"
#include "sim/engine/program.hpp"

namespace scapesim::engine {

namespace {

constexpr std::uint32_t kNone = ~0U;

/// What begins and ends at once: an operation, or a collective with its members' operations.
struct Node {
  std::vector<GlobalOp> members;
  bool joint = false;  ///< all copies wait for each other
  bool local = false;
  Seconds takes;  ///< not local
};

/// An end that a node waits for.
struct Cause {
  std::uint32_t node = 0;
  int steps_back = 0;
};

class Search {
 public:
  explicit Search(const Pipelines& pipelines)
      : pipelines_(pipelines),
        program_(program_of(pipelines.graph)),
        copies_(pipelines.durations.size()) {
    make_nodes();
    find_causes();
    sort();
  }

  LongestPath run() {
    constexpr int kSteps = 2;
    for (int step = 0; step < kSteps; ++step) {
      ends_.emplace_back(nodes_.size() * copies_);
      for (const std::uint32_t node : order_) time(node, step);
    }
    return {.step_time = last(1).end - last(0).end, .copies = walk(last(1))};
  }

 private:
  struct Place {
    int step = 0;
    std::uint32_t node = kNone;
    std::size_t copy = 0;
    Seconds end;
  };

  std::size_t at(std::uint32_t node, std::size_t copy) const { return node * copies_ + copy; }

  void make_nodes() {
    node_of_.assign(program_.ops.size(), kNone);
    std::vector<std::uint32_t> of_collective(pipelines_.graph.collectives.size(), kNone);
    for (GlobalOp op = 0; op < program_.ops.size(); ++op) {
      const Program::Op& what = program_.ops[op];
      std::uint32_t node = static_cast<std::uint32_t>(nodes_.size());
      if (what.collective != nullptr) {
        std::uint32_t& known = of_collective[what.collective_id];
        node = known = known == kNone ? node : known;
      }
      if (node == nodes_.size()) nodes_.emplace_back();
      nodes_[node].members.push_back(op);
      nodes_[node].local = what.collective == nullptr && what.transfer == nullptr;
      nodes_[node].joint = what.collective != nullptr && !pipelines_.within[what.collective_id];
      if (!nodes_[node].local) nodes_[node].takes = time_in_timeline(op);
      node_of_[op] = node;
    }
  }

  /// In the timeline's last step, begun to ended.
  Seconds time_in_timeline(GlobalOp op) const {
    const auto steps = pipelines_.timeline.step_end.size();
    const Span& span = pipelines_.timeline.spans[(steps - 1) * program_.ops.size() + op];
    return span.end - span.begin;
  }

  void find_causes() {
    causes_.resize(nodes_.size());
    const auto add = [&](GlobalOp op, GlobalOp before, int steps_back) {
      causes_[node_of_[op]].push_back({node_of_[before], steps_back});
    };
    for (GlobalOp op = 0; op < program_.ops.size(); ++op)
      for (std::uint32_t i = program_.ops[op].waits.begin; i < program_.ops[op].waits.end; ++i)
        add(op, program_.waits[i].op, program_.waits[i].steps_back);
    for (const Range& stream : program_.streams) {
      for (std::uint32_t i = stream.begin + 1; i < stream.end; ++i)
        add(program_.issue[i], program_.issue[i - 1], 0);
      add(program_.issue[stream.begin], program_.issue[stream.end - 1], 1);
    }
  }

  /// Nodes in an order in which those of the same step that one waits for stand before it.
  void sort() {
    std::vector<std::uint32_t> open(nodes_.size(), 0);
    std::vector<std::vector<std::uint32_t>> effects(nodes_.size());
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
      for (const Cause& cause : causes_[node])
        if (cause.steps_back == 0) {
          effects[cause.node].push_back(node);
          ++open[node];
        }
    for (std::uint32_t node = 0; node < nodes_.size(); ++node)
      if (open[node] == 0) order_.push_back(node);
    for (std::size_t i = 0; i < order_.size(); ++i)
      for (const std::uint32_t effect : effects[order_[i]])
        if (--open[effect] == 0) order_.push_back(effect);
    SCAPESIM_CHECK(order_.size() == nodes_.size(), "{} of {} operations can begin", order_.size(),
                   nodes_.size());
  }

  void time(std::uint32_t node, int step) {
    Seconds* end = &ends_[static_cast<std::size_t>(step)][at(node, 0)];
    for (const Cause& cause : causes_[node]) {
      if (cause.steps_back > step) continue;
      const Seconds* before =
          &ends_[static_cast<std::size_t>(step - cause.steps_back)][at(cause.node, 0)];
      for (std::size_t copy = 0; copy < copies_; ++copy)
        end[copy] = std::max(end[copy], before[copy]);
    }
    if (nodes_[node].joint) std::fill_n(end, copies_, *std::max_element(end, end + copies_));
    for (std::size_t copy = 0; copy < copies_; ++copy) end[copy] += takes(node, copy);
  }

  Seconds takes(std::uint32_t node, std::size_t copy) const {
    const Node& what = nodes_[node];
    return what.local ? pipelines_.durations[copy][what.members.front()] : what.takes;
  }

  Place last(int step) const {
    Place place;
    for (GlobalOp op = 0; op < program_.ops.size(); ++op) {
      if (!program_.ops[op].ends_step) continue;
      for (std::size_t copy = 0; copy < copies_; ++copy)
        take_later(place, {step, node_of_[op], copy, {}});
    }
    return place;
  }

  void take_later(Place& latest, Place place) const {
    place.end = ends_[static_cast<std::size_t>(place.step)][at(place.node, place.copy)];
    if (latest.node == kNone || place.end > latest.end) latest = place;
  }

  /// Copies on the way back from an end to the first step's beginning.
  std::vector<std::uint32_t> walk(Place place) const {
    std::set<std::uint32_t> met;
    while (place.node != kNone) {
      met.insert(static_cast<std::uint32_t>(place.copy));
      Place before;
      for (const Cause& cause : causes_[place.node]) {
        if (cause.steps_back > place.step) continue;
        const bool all = nodes_[place.node].joint;
        for (std::size_t copy = all ? 0 : place.copy; copy < (all ? copies_ : place.copy + 1);
             ++copy)
          take_later(before, {place.step - cause.steps_back, cause.node, copy, {}});
      }
      place = before;
    }
    return {met.begin(), met.end()};
  }

  const Pipelines& pipelines_;
  Program program_;
  std::size_t copies_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> node_of_;  ///< per operation
  std::vector<std::vector<Cause>> causes_;
  std::vector<std::uint32_t> order_;
  std::vector<std::vector<Seconds>> ends_;  ///< per step: node after node, copy after copy
};

}  // namespace

LongestPath longest_path(const Pipelines& pipelines) { return Search(pipelines).run(); }

}  // namespace scapesim::engine
