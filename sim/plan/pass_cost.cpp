// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/pass_cost.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "sim/base/check.hpp"
#include "sim/plan/groups.hpp"

namespace scapesim::plan {

namespace {

using workload::Exchange;
using workload::is_weight_gradient;
using workload::Operation;
using Operations = std::vector<Operation>;

const Exchange* exchange_of(const Operation& operation) {
  return std::get_if<Exchange>(&operation.shape);
}

bool belongs_to(const Operation& operation, Pass pass) {
  switch (pass) {
    case Pass::forward:
    case Pass::backward:
      return true;
    case Pass::input_gradient:
      return !is_weight_gradient(operation);
    case Pass::weight_gradient:
      return is_weight_gradient(operation);
  }
  throw InternalError("pass");
}

void add_inside(std::vector<graph::Inside>& list, const graph::Inside& more) {
  for (graph::Inside& inside : list)
    if (inside.name == more.name && inside.kind == more.kind && inside.bytes == more.bytes &&
        inside.group_size == more.group_size) {
      inside.count += more.count;
      inside.time += more.time;
      inside.exposed += more.exposed;
      return;
    }
  list.push_back(more);
}

/// Name of an exchange in the table of communication: its axis and kind.
std::string row_name(const Exchange& exchange) {
  return std::string(name_of(exchange.axis)) + " " + std::string(name_of(exchange.kind));
}

/// An exchange that runs beside the operation it names.
struct Beside {
  graph::Inside exchange;
  std::string_view operation;
};

/// A pass as it is summed up.
struct Sum {
  PassCost cost;
  PaceOfPass pace;
};

/// Ends an exchange that ran beside `time` of an operation. [M406] which it slowed down.
void end_exchange(Sum& both, std::optional<Beside>& running, Seconds time) {
  if (!running) return;
  PassCost& sum = both.cost;
  const Seconds added =
      cost::added_beside(running->exchange.time, time, both.pace.overlap_slowdown);
  sum.time += added;
  running->exchange.exposed = std::max(running->exchange.time - time - added, Seconds(0));
  if (time > Seconds(0))
    both.pace.beside.push_back({running->exchange.time, time});
  else
    both.pace.exchanges += running->exchange.time;
  sum.time += running->exchange.exposed;
  add_inside(sum.inside, running->exchange);
  running.reset();
}

// [M11] [M233] Kernels one after the other, [M177] or as fast as the host launches them; an
// exchange holds them up, or runs beside the one it names, if that belongs to the pass, and holds
// up what follows for what it takes longer.
Sum cost_of(const Operations& operations, Pass pass, const cost::KernelCosts& costs,
            const ExchangeTimes& exchanges) {
  Sum sum;
  sum.pace.overlap_slowdown = costs.overlap_slowdown();
  std::optional<Beside> running;
  int launches = 0;
  for (const Operation& operation : operations) {
    if (!belongs_to(operation, pass)) continue;
    if (running && operation.name != running->operation) end_exchange(sum, running, Seconds(0));
    if (const Exchange* exchange = exchange_of(operation)) {
      if (exchanges.ranks(exchange->axis) == 1) continue;
      ++launches;
      running = {exchanges.inside(*exchange), exchange->overlaps};
      if (exchange->overlaps.empty()) end_exchange(sum, running, Seconds(0));
      continue;
    }
    const Seconds time = workload::time_of(operation, costs);
    sum.cost.time += time;
    sum.pace.kernels += time;
    sum.cost.flops += workload::flops_of(operation);
    launches += workload::launches_of(operation);
    end_exchange(sum, running, time);
  }
  end_exchange(sum, running, Seconds(0));
  sum.pace.launches = costs.launch_time(launches);
  sum.cost.launches = sum.pace.launches;
  sum.cost.time = std::max(sum.cost.time, sum.pace.launches);
  return sum;
}

bool is_of_experts(const graph::Inside& inside) {
  return inside.name.starts_with(name_of(graph::Axis::expert));
}

Seconds exchanges_of_experts(const PassCost& cost) {
  Seconds sum;
  for (const graph::Inside& inside : cost.inside)
    if (is_of_experts(inside)) sum += inside.exposed;
  return sum;
}

constexpr Pass kPasses[] = {Pass::forward, Pass::backward, Pass::input_gradient,
                            Pass::weight_gradient};

BytesPerSecond rate_alone(const graph::Phase& phase,
                          const std::vector<graph::Resource>& resources) {
  BytesPerSecond rate(std::numeric_limits<double>::infinity());
  if (phase.rate_cap.si() > 0) rate = phase.rate_cap;
  for (const graph::Load& load : phase.loads)
    rate = std::min(rate, resources[index(load.resource)].capacity / load.flows);
  return rate;
}

/// Every exchange of the layers that differ.
template <class Visit>
void for_each_exchange(const workload::Workload& workload, Visit visit) {
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const workload::Layer& layer = workload.layers[i];
    if (layer.like < i) continue;
    for (const Operations* operations : {&layer.forward, &layer.backward})
      for (const Operation& operation : *operations)
        if (const Exchange* exchange = exchange_of(operation)) visit(*exchange);
  }
}

}  // namespace

Seconds PaceOfPass::at(double slowdown) const {
  Seconds time = slowdown * kernels + exchanges;
  for (const ExchangeBeside& pair : beside) {
    const Seconds kernel = slowdown * pair.kernel;
    const Seconds added = cost::added_beside(pair.exchange, kernel, overlap_slowdown);
    time += added + std::max(pair.exchange - kernel - added, Seconds(0));
  }
  return std::max(time, launches);
}

PassCost& operator+=(PassCost& sum, const PassCost& more) {
  sum.time += more.time;
  sum.flops += more.flops;
  sum.launches += more.launches;
  for (const graph::Inside& inside : more.inside) add_inside(sum.inside, inside);
  return sum;
}

// [M426] Kernels and exchanges are engines that both passes share; a pass alone uses one at a time.
double hidden_share(const Lanes& forward, const Lanes& backward) {
  const Seconds exchanges = forward.exchanges + backward.exchanges;
  if (exchanges == Seconds(0)) return 0;
  const Seconds kernels = forward.kernels + backward.kernels;
  const Seconds together = std::max({kernels, exchanges, forward.kernels + forward.exchanges,
                                     backward.kernels + backward.exchanges});
  return 1 - (together - kernels) / exchanges;
}

PassCost with_hidden(PassCost cost, double share) {
  if (share == 0) return cost;
  for (graph::Inside& inside : cost.inside) {
    if (!is_of_experts(inside)) continue;
    cost.time -= share * inside.exposed;
    inside.exposed = (1 - share) * inside.exposed;
  }
  cost.time = std::max(cost.time, cost.launches);
  return cost;
}

Seconds time_alone(const graph::Collective& collective,
                   const std::vector<graph::Resource>& resources) {
  Seconds time;
  for (const graph::Phase& phase : collective.phases)
    time += phase.latency + phase.bytes / rate_alone(phase, resources);
  return time;
}

ExchangeTimes::ExchangeTimes(const workload::Workload& workload, const Seats& seats,
                             const cost::Profile& profile, const spec::Collectives& collectives)
    : mesh_(seats.mesh) {
  std::vector<GroupSet> sets;
  std::map<graph::Axis, std::size_t> set_of;
  std::vector<CollectiveCall> calls;
  std::vector<Key> keys;
  for_each_exchange(workload, [&](const Exchange& exchange) {
    const Key key{exchange.kind, exchange.axis, exchange.bytes};
    if (ranks(exchange.axis) == 1 || !times_.try_emplace(key).second) return;
    keys.push_back(key);
    const auto [set, is_new] = set_of.try_emplace(exchange.axis, sets.size());
    if (is_new) sets.push_back(all_groups(seats, exchange.axis));
    calls.push_back(forced({.name = row_name(exchange),
                            .kind = exchange.kind,
                            .size = exchange.bytes,
                            .group = set->second,
                            .members = {},
                            .profile = &profile},
                           collectives));
  });
  const NetworkPlan network = plan_collectives(seats.fabric, sets, calls);
  for (std::size_t i = 0; i < calls.size(); ++i)
    times_[keys[i]] = {.time = time_alone(network.collectives[i], network.resources),
                       .algorithm = network.collectives[i].algorithm,
                       .protocol = network.collectives[i].protocol};
}

graph::Inside ExchangeTimes::inside(const Exchange& exchange) const {
  const Alone& alone = times_.at({exchange.kind, exchange.axis, exchange.bytes});
  return {.name = row_name(exchange),
          .kind = exchange.kind,
          .group_size = ranks(exchange.axis),
          .count = 1,
          .bytes = exchange.bytes,
          .time = alone.time,
          .exposed = alone.time,
          .algorithm = alone.algorithm,
          .protocol = alone.protocol};
}

LayerCosts::LayerCosts(const workload::Workload& workload, const cost::KernelCosts& costs,
                       const ExchangeTimes& exchanges) {
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const workload::Layer& layer = workload.layers[i];
    if (layer.like < i) {
      row_of_.push_back(row_of_[layer.like]);
      continue;
    }
    row_of_.push_back(rows_.size());
    Row& row = rows_.emplace_back();
    for (const Pass pass : kPasses) {
      Sum sum =
          cost_of(pass == Pass::forward ? layer.forward : layer.backward, pass, costs, exchanges);
      row.of_pass[static_cast<std::size_t>(pass)] = std::move(sum.cost);
      row.pace[static_cast<std::size_t>(pass)] = std::move(sum.pace);
    }
  }
}

const PassCost& LayerCosts::layer(std::size_t layer, Pass pass) const {
  return rows_[row_of_[layer]].of_pass[static_cast<std::size_t>(pass)];
}

PassCost LayerCosts::part(std::size_t begin, std::size_t end, Pass pass, double hidden) const {
  PassCost sum;
  for (std::size_t i = begin; i < end; ++i) sum += with_hidden(layer(i, pass), hidden);
  return sum;
}

Seconds LayerCosts::slowed(std::size_t begin, std::size_t end, Pass pass, double slowdown,
                           double hidden) const {
  Seconds sum;
  for (std::size_t i = begin; i < end; ++i) {
    const PaceOfPass& pace = rows_[row_of_[i]].pace[static_cast<std::size_t>(pass)];
    const Seconds saved = hidden == 0 ? Seconds(0) : hidden * exchanges_of_experts(layer(i, pass));
    sum += std::max(pace.at(slowdown) - saved, pace.launches);
  }
  return sum;
}

Lanes LayerCosts::lanes(const Part& part, Pass pass, double slowdown) const {
  Lanes sum;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const PaceOfPass& pace = rows_[row_of_[i]].pace[static_cast<std::size_t>(pass)];
    const Seconds exchanges = exchanges_of_experts(layer(i, pass));
    sum.exchanges += exchanges;
    sum.kernels += std::max(pace.at(slowdown) - exchanges, pace.launches);
  }
  return sum;
}

double LayerCosts::hidden_share(const Pair& pair, double slowdown) const {
  return plan::hidden_share(lanes(pair.forward, Pass::forward, slowdown),
                            lanes(pair.backward, Pass::backward, slowdown));
}

}  // namespace scapesim::plan
