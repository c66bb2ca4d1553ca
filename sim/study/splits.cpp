// SPDX-License-Identifier: Apache-2.0
#include "sim/study/splits.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "sim/base/named.hpp"

namespace scapesim::study {

namespace {

template <class T>
std::vector<T> divisors(T number) {
  std::vector<T> low, high;
  for (T d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(d);
    if (d != number / d) high.push_back(number / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

/// The values of a key: what is offered, or the scenario's own where it is held.
template <class T>
std::vector<T> values(const Held& held, std::string_view key, T own, std::vector<T> offered) {
  if (held.contains(key)) return {own};
  return offered;
}

template <class E>
std::vector<E> all_of() {
  std::vector<E> list;
  for (const auto& row : names<E>()) list.push_back(row.value);
  return list;
}

/// [M421] Layers of every part when they do not divide: from the last part but one towards the
/// front, then the ends, get one more.
std::vector<int> dealt_layers(int layers, int parts) {
  std::vector<int> list(static_cast<std::size_t>(parts), layers / parts);
  int left = layers % parts;
  for (std::size_t i = list.size() - 1; i-- > 1 && left > 0; --left) ++list[i];
  if (left > 0) ++list.front();
  return list;
}

void set_stage_layers(spec::Scenario& scenario) {
  spec::Parallelism& p = scenario.parallelism;
  const int parts = p.pp * p.virtual_stages;
  if (std::ssize(p.stage_layers) == parts) return;
  p.stage_layers.clear();
  const int layers = scenario.model.layers;
  const bool deals = p.virtual_stages == 1 || p.schedule == spec::Schedule::dualpipe;
  if (deals && parts <= layers && layers % parts != 0) p.stage_layers = dealt_layers(layers, parts);
}

/// Chunks per stage that a schedule may have.
std::vector<int> chunk_counts(const spec::Scenario& scenario, int pp, spec::Schedule schedule) {
  const int layers = scenario.model.layers;
  if (schedule == spec::Schedule::dualpipe) return {2};
  if (schedule != spec::Schedule::interleaved || pp == 1) return {1};
  if (layers % pp != 0) return {};
  std::vector<int> counts = divisors(layers / pp);
  counts.erase(counts.begin());
  return counts;
}

struct Order {
  spec::Schedule schedule;
  int virtual_stages;
};

/// Without a pipeline all schedules are one.
std::vector<Order> orders(const spec::Scenario& scenario, int pp, const Held& held) {
  const spec::Parallelism& own = scenario.parallelism;
  const std::vector<spec::Schedule> offered =
      pp == 1 ? std::vector{spec::Schedule::one_f_one_b} : all_of<spec::Schedule>();
  std::vector<Order> list;
  for (const spec::Schedule schedule : values(held, "parallelism.schedule", own.schedule, offered))
    for (const int chunks : values(held, "parallelism.virtual_stages", own.virtual_stages,
                                   chunk_counts(scenario, pp, schedule)))
      list.push_back({schedule, chunks});
  return list;
}

/// With one copy of everything there is nothing to share. In a pipeline, gradients or parameters
/// that are communicated with every micro-batch are tried if the scenario has them.
std::vector<spec::Sharding> shardings(const spec::Scenario& scenario, int pp, bool copies,
                                      const Held& held) {
  const spec::Sharding own = scenario.strategy.sharding;
  std::vector<spec::Sharding> offered = all_of<spec::Sharding>();
  if (pp > 1) offered = {spec::Sharding::none, spec::Sharding::zero1};
  if (!copies) offered = {spec::Sharding::none};
  if (std::ranges::find(offered, own) == offered.end()) offered.push_back(own);
  return values(held, "strategy.sharding", own, offered);
}

/// What is recomputed, and of how many layers.
struct Recomputed {
  spec::Recompute recompute;
  std::optional<int> layers;
};

/// [M421] Of all layers, or of a quarter, a half and three quarters of a stage's; only whole layers
/// are recomputed by number, as Megatron-LM does.
std::vector<Recomputed> recomputations(const spec::Scenario& scenario, int pp, const Held& held) {
  const spec::Training& own = scenario.training;
  const int layers = (scenario.model.layers + pp - 1) / pp;
  std::vector<Recomputed> list;
  for (const spec::Recompute recompute :
       values(held, "training.recompute", own.recompute, all_of<spec::Recompute>())) {
    std::vector<std::optional<int>> counts{std::nullopt};
    const auto offer = [&](int count) {
      if (count > 0 && count < layers && std::ranges::find(counts, count) == counts.end())
        counts.emplace_back(count);
    };
    if (recompute == spec::Recompute::full)
      for (const int quarters : {1, 2, 3}) offer(layers * quarters / 4);
    if (recompute == own.recompute && own.recompute_layers) offer(*own.recompute_layers);
    if (recompute == spec::Recompute::none) counts = {std::nullopt};
    for (const std::optional<int> count :
         values(held, "training.recompute_layers", own.recompute_layers, counts))
      list.push_back({recompute, count});
  }
  return list;
}

/// Products beside collectives are never slower: the other way is tried if the scenario has it.
std::vector<bool> overlaps(const spec::Scenario& scenario, int tp, const Held& held) {
  const bool own = scenario.parallelism.tensor_overlap;
  if (tp == 1) return {own};
  return values(held, "parallelism.tensor_overlap", own,
                own ? std::vector{true} : std::vector{true, false});
}

std::vector<int> expert_degrees(const spec::Scenario& scenario, int stage_ranks) {
  if (scenario.model.experts == 0) return {1};
  return divisors(std::gcd(scenario.model.experts, stage_ranks));
}

}  // namespace

std::vector<KeyValue> keys_of(const Split& split) {
  const auto text = [](auto number) { return fmt::format("{}", number); };
  return {{"cluster.gpus", text(split.gpus)},
          {"parallelism.tp", text(split.tp)},
          {"parallelism.pp", text(split.pp)},
          {"parallelism.cp", text(split.cp)},
          {"parallelism.ep", text(split.ep)},
          {"parallelism.sequence_parallel", split.sequence_parallel ? "true" : "false"},
          {"parallelism.tensor_overlap", split.tensor_overlap ? "true" : "false"},
          {"training.micro_batch", text(split.micro_batch)},
          {"training.recompute", std::string(name_of(split.recompute))},
          {"training.recompute_layers",
           split.recompute_layers ? text(*split.recompute_layers) : "none"},
          {"parallelism.schedule", std::string(name_of(split.schedule))},
          {"parallelism.virtual_stages", text(split.virtual_stages)},
          {"strategy.sharding", std::string(name_of(split.sharding))}};
}

Split split_of(const spec::Scenario& scenario) {
  const spec::Parallelism& p = scenario.parallelism;
  return {.gpus = scenario.cluster.gpus,
          .tp = p.tp,
          .pp = p.pp,
          .cp = p.cp,
          .ep = p.ep,
          .sequence_parallel = p.sequence_parallel,
          .tensor_overlap = p.tensor_overlap,
          .micro_batch = scenario.training.micro_batch,
          .recompute = scenario.training.recompute,
          .recompute_layers = scenario.training.recompute_layers,
          .schedule = p.schedule,
          .virtual_stages = p.virtual_stages,
          .sharding = scenario.strategy.sharding};
}

spec::Scenario with_split(const spec::Scenario& scenario, const Split& split) {
  spec::Scenario out = scenario;
  spec::Parallelism& p = out.parallelism;
  out.cluster.gpus = split.gpus;
  p.tp = split.tp;
  p.pp = split.pp;
  p.cp = split.cp;
  p.ep = split.ep;
  p.sequence_parallel = split.sequence_parallel;
  p.tensor_overlap = split.tensor_overlap;
  p.schedule = split.schedule;
  p.virtual_stages = split.virtual_stages;
  out.training.micro_batch = split.micro_batch;
  out.training.recompute = split.recompute;
  out.training.recompute_layers = split.recompute_layers;
  out.strategy.sharding = split.sharding;
  set_stage_layers(out);
  return out;
}

std::vector<Frame> frames(const spec::Scenario& scenario, int gpus, const Held& held) {
  const spec::Parallelism& own = scenario.parallelism;
  std::vector<Frame> list;
  for (const int tp : values(held, "parallelism.tp", own.tp, divisors(gpus)))
    for (const int pp : values(held, "parallelism.pp", own.pp, divisors(std::max(1, gpus / tp))))
      for (const int cp :
           values(held, "parallelism.cp", own.cp, divisors(std::max(1, gpus / tp / pp))))
        for (const int ep :
             values(held, "parallelism.ep", own.ep, expert_degrees(scenario, gpus / pp)))
          for (const bool sequence :
               values(held, "parallelism.sequence_parallel", own.sequence_parallel,
                      tp > 1 ? std::vector{false, true} : std::vector{false}))
            for (const bool overlap : overlaps(scenario, tp, held))
              list.push_back({gpus, tp, pp, cp, ep, sequence, overlap});
  return list;
}

std::vector<Split> splits(const spec::Scenario& scenario, const Frame& frame, const Held& held) {
  const spec::Training& own = scenario.training;
  const std::int64_t model_parallel = std::int64_t{frame.tp} * frame.pp * frame.cp;
  const std::int64_t copies = frame.gpus / model_parallel;
  if (frame.gpus % model_parallel != 0 || own.global_batch % copies != 0) return {};
  const std::vector<Order> all_orders = orders(scenario, frame.pp, held);
  const std::vector<spec::Sharding> all_shardings =
      shardings(scenario, frame.pp, copies * frame.cp > 1, held);
  std::vector<Split> list;
  for (const std::int64_t micro_batch :
       values(held, "training.micro_batch", own.micro_batch, divisors(own.global_batch / copies)))
    for (const Recomputed& recomputed : recomputations(scenario, frame.pp, held))
      for (const Order& order : all_orders)
        for (const spec::Sharding sharding : all_shardings)
          list.push_back({.gpus = frame.gpus,
                          .tp = frame.tp,
                          .pp = frame.pp,
                          .cp = frame.cp,
                          .ep = frame.ep,
                          .sequence_parallel = frame.sequence_parallel,
                          .tensor_overlap = frame.tensor_overlap,
                          .micro_batch = micro_batch,
                          .recompute = recomputed.recompute,
                          .recompute_layers = recomputed.layers,
                          .schedule = order.schedule,
                          .virtual_stages = order.virtual_stages,
                          .sharding = sharding});
  return list;
}

}  // namespace scapesim::study
