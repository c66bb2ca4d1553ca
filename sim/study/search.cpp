// SPDX-License-Identifier: Apache-2.0
#include "sim/study/search.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/plan/memory.hpp"
#include "sim/scenario/resolve.hpp"
#include "sim/study/parallel.hpp"
#include "sim/workload/documents.hpp"
#include "topologies/placement.hpp"

namespace scapesim::study {

namespace {

constexpr std::size_t kRound = 32;      // splits simulated between two looks at the best
constexpr double kRounding = 1 - 1e-9;  // of sums in another order

/// A split that breaks no rule and fits.
struct Candidate {
  Split split;
  plan::StepBound bound;
  Bytes memory;
  std::array<Bytes, 6> terms;
};

constexpr std::array<std::string_view, 6> kMemoryTerms = {
    "parameters", "gradients", "optimizer state", "strategy", "activations", "temporaries"};

std::array<Bytes, 6> terms_of(const plan::MemoryNeed& need) {
  return {need.parameters, need.gradients,   need.optimizer,
          need.strategy,   need.activations, need.temporary};
}

template <std::size_t N, class T>
std::size_t largest(const std::array<T, N>& list) {
  return static_cast<std::size_t>(std::ranges::max_element(list) - list.begin());
}

/// Counts by reason, in order of the first of each.
class Reasons {
 public:
  Losers& add(Lost lost, const std::string& reason, std::int64_t count = 1) {
    const auto [at, is_new] = row_of_.try_emplace({lost, reason}, rows_.size());
    if (is_new) rows_.push_back({.lost = lost, .reason = reason, .splits = 0});
    rows_[at->second].splits += count;
    return rows_[at->second];
  }
  void add(const Reasons& more) {
    for (const Losers& row : more.rows_) {
      Losers& sum = add(row.lost, row.reason, row.splits);
      if (row.nearest) sum.nearest = row.nearest;
      if (row.smallest && (!sum.smallest || row.smallest->need < sum.smallest->need))
        sum.smallest = row.smallest;
    }
  }
  std::vector<Losers> sorted() const {
    std::vector<Losers> list = rows_;
    std::ranges::stable_sort(list, [](const Losers& a, const Losers& b) {
      return a.lost != b.lost ? a.lost < b.lost : a.splits > b.splits;
    });
    return list;
  }

 private:
  std::vector<Losers> rows_;
  std::map<std::pair<Lost, std::string>, std::size_t> row_of_;
};

/// What became of the splits of a frame.
struct Looked {
  std::vector<Candidate> fitting;
  Reasons reasons;
  std::int64_t considered = 0;
};

/// Costs that splits of one frame, micro-batch and recomputation share.
struct Shared {
  workload::Workload workload;
  std::optional<plan::PassTimes> times;  ///< once a split fits
};

/// Looks at all splits of a number of GPUs; holds what they share.
class Field {
 public:
  Field(const Series& series, int gpus, const Held& held)
      : series_(series), held_(held), cluster_(cluster_of(series, gpus)) {
    fabric_ = topology::build_fabric(cluster_, topology::nodes_to_build(cluster_));
    seats_ = topology::placement(cluster_);
  }

  Looked look_at(const Frame& frame) const {
    Looked looked;
    const Split* before = nullptr;
    std::unique_ptr<Shared> shared;
    const std::vector<Split> list = splits(series_.scenario, frame, held_);
    looked.considered = std::max<std::int64_t>(1, std::ssize(list));
    if (list.empty())
      looked.reasons.add(Lost::breaks_rule,
                         "training.global_batch does not divide over the copies");
    for (const Split& split : list) {
      const spec::Scenario scenario = with_split(series_.scenario, split);
      const std::vector<spec::Violation> violations = spec::violations(scenario);
      if (!violations.empty()) {
        looked.reasons.add(Lost::breaks_rule, violations.front().key);
        continue;
      }
      if (shared == nullptr || before->micro_batch != split.micro_batch ||
          before->recompute != split.recompute ||
          before->recompute_layers != split.recompute_layers)
        shared = std::make_unique<Shared>(Shared{
            workload::rank_workload(scenario.model, scenario.training, scenario.parallelism), {}});
      before = &split;
      add(looked, split, scenario, *shared);
    }
    return looked;
  }

 private:
  static spec::Cluster cluster_of(const Series& series, int gpus) {
    spec::Cluster cluster = series.scenario.cluster;
    cluster.gpus = gpus;
    return cluster;
  }

  plan::PassTimes times_of(const spec::Scenario& scenario,
                           const workload::Workload& workload) const {
    const cost::KernelCosts costs(series_.profile, scenario.cluster.gpu,
                                  scenario.training.precision,
                                  cost::fleet_of(series_.profile, scenario.cluster));
    const plan::Seats seats{graph::mesh_of(scenario), *fabric_, seats_};
    const auto times = [&](const workload::Workload& work) {
      const plan::ExchangeTimes exchanges(work, seats, series_.profile, scenario.collectives);
      return plan::PassTimes(work, plan::LayerCosts(work, costs, exchanges));
    };
    if (scenario.training.documents != spec::Documents::longest) return times(workload);
    // [M433] Micro-batches are shorter than what memory must do for.
    const spec::Scenario mean = workload::mean_rank(scenario);
    return times(workload::rank_workload(mean.model, mean.training, mean.parallelism));
  }

  void add(Looked& looked, const Split& split, const spec::Scenario& scenario,
           Shared& shared) const {
    const plan::MemoryNeed need = plan::memory_need(scenario, shared.workload, series_.profile);
    if (need.total + need.context > scenario.cluster.gpu.memory) {
      const Bytes whole = need.total + need.context;
      Losers& row = looked.reasons.add(Lost::does_not_fit,
                                       std::string(kMemoryTerms[largest(terms_of(need))]));
      if (!row.smallest || whole < row.smallest->need) row.smallest = {split, whole};
      return;
    }
    if (!shared.times) shared.times = times_of(scenario, shared.workload);
    looked.fitting.push_back({.split = split,
                              .bound = plan::step_bound(scenario, series_.profile, *shared.times,
                                                        plan::parts_of(shared.workload, scenario)),
                              .memory = need.total + need.context,
                              .terms = terms_of(need)});
  }

  const Series& series_;
  const Held& held_;
  spec::Cluster cluster_;
  std::optional<topology::Fabric> fabric_;
  std::vector<topology::GpuId> seats_;
};

/// What the best have least of.
double score(Objective objective, const Candidate& candidate, Seconds time) {
  switch (objective) {
    case Objective::time:
      return time.si();
    case Objective::memory:
      return candidate.memory.si();
    case Objective::cost:
      return time.si() * candidate.split.gpus;
  }
  throw InternalError("objective");
}

/// [M422] Candidates in the order of their bounds, simulated until none is left whose bound is
/// below the worst of the best.
class Race {
 public:
  Race(const Series& series, const SearchOptions& options, std::vector<Candidate> field)
      : series_(series), options_(options), field_(std::move(field)), runs_(field_.size()) {
    const auto order = [&](const Candidate& candidate) {
      return std::pair{least(candidate), candidate.bound.time};
    };
    std::ranges::stable_sort(field_, {}, order);
  }

  void run() {
    while (next_ < field_.size() && may_win(next_)) {
      std::size_t end = next_;
      while (end < field_.size() && end - next_ < kRound && may_win(end)) ++end;
      auto outcomes = parallel(end - next_, options_.jobs, [&](std::size_t i) {
        return simulate(field_[next_ + i],
                        {.driver = options_.predict.driver, .interval_draws = 0});
      });
      for (std::size_t i = 0; i < outcomes.size(); ++i) take(next_ + i, std::move(outcomes[i]));
      next_ = end;
    }
  }

  std::vector<Found> best() const {
    return parallel(best_.size(), options_.jobs, [&](std::size_t i) {
      const Candidate& candidate = field_[best_[i].second];
      spec::Scenario scenario = scenario_of(candidate);
      result::Run run =
          std::get<result::Run>(predict(scenario, series_.profile, options_.predict).outcome);
      return Found{candidate.split, std::move(scenario), std::move(run)};
    });
  }

  std::int64_t simulated() const { return static_cast<std::int64_t>(next_); }
  Reasons reasons() const;

 private:
  using Result = std::optional<std::variant<result::Run, result::Infeasible>>;

  double least(const Candidate& candidate) const {
    return score(options_.objective, candidate, candidate.bound.time * kRounding);
  }
  bool may_win(std::size_t i) const {
    return best_.size() < options_.top || least(field_[i]) < best_.back().first;
  }
  spec::Scenario scenario_of(const Candidate& candidate) const {
    spec::Scenario scenario = with_split(series_.scenario, candidate.split);
    scenario.hash = scenario::hash_of(scenario);
    return scenario;
  }
  Result simulate(const Candidate& candidate, const PredictOptions& how) const {
    return predict(scenario_of(candidate), series_.profile, how).outcome;
  }
  void take(std::size_t i, Result result) {
    runs_[i] = std::move(result);
    const auto* run = std::get_if<result::Run>(&*runs_[i]);
    if (run == nullptr) return;
    best_.push_back({score(options_.objective, field_[i], run->step_time), i});
    std::ranges::sort(best_);
    if (best_.size() > options_.top) best_.pop_back();
  }

  const Series& series_;
  const SearchOptions& options_;
  std::vector<Candidate> field_;
  std::vector<Result> runs_;
  std::vector<std::pair<double, std::size_t>> best_;  ///< ascending
  std::size_t next_ = 0;
};

/// Parts of a step that a loser may have more of than the best.
constexpr std::array<std::string_view, 7> kStepTerms = {
    "kernels",
    "exposed tensor-parallel exchanges",
    "exposed context-parallel exchanges",
    "exposed expert-parallel exchanges",
    "pipeline bubble",
    "host work",
    "gradients and parameters, optimizer, waiting for messages"};

std::array<double, 7> step_terms(const plan::StepBound& bound, Seconds time) {
  return {bound.kernels.si(), bound.tensor.si(), bound.context.si(),      bound.expert.si(),
          bound.bubble.si(),  bound.host.si(),   (time - bound.time).si()};
}

/// The term that a loser has most more of.
std::size_t most_more(const std::array<double, 7>& loser, const std::array<double, 7>& best) {
  std::array<double, 7> more{};
  for (std::size_t i = 0; i < more.size(); ++i) more[i] = loser[i] - best[i];
  return largest(more);
}

/// Kernels take longer for a reason that the split names.
std::string kernels_reason(const Split& loser, const Split& best) {
  if (loser.recompute > best.recompute) return "kernels: more is recomputed";
  return "kernels: smaller products, or stages of unequal work";
}

Reasons Race::reasons() const {
  Reasons reasons;
  if (best_.empty()) return reasons;
  const Candidate& winner = field_[best_.front().second];
  const auto winner_time = std::get<result::Run>(*runs_[best_.front().second]).step_time;
  const auto terms = step_terms(winner.bound, winner_time);
  std::vector<bool> is_best(field_.size());
  for (const auto& [score, i] : best_) is_best[i] = true;
  for (std::size_t i = 0; i < field_.size(); ++i) {
    if (is_best[i]) continue;
    const Candidate& candidate = field_[i];
    const auto* run = runs_[i] ? std::get_if<result::Run>(&*runs_[i]) : nullptr;
    if (runs_[i] && run == nullptr) {
      reasons.add(Lost::does_not_fit, "host memory");
      continue;
    }
    const Seconds time = run != nullptr ? run->step_time : candidate.bound.time;
    std::string reason;
    if (options_.objective == Objective::memory) {
      std::array<double, 6> more{};
      for (std::size_t k = 0; k < more.size(); ++k)
        more[k] = (candidate.terms[k] - winner.terms[k]).si();
      reason = kMemoryTerms[largest(more)];
    } else {
      const std::size_t most = most_more(step_terms(candidate.bound, time), terms);
      reason = most == 0 ? kernels_reason(candidate.split, winner.split) : kStepTerms[most];
    }
    Losers& row = reasons.add(Lost::behind, reason);
    if (row.nearest && row.nearest->time <= time) continue;
    row.nearest = {.split = candidate.split, .time = time, .simulated = run != nullptr};
  }
  return reasons;
}

void check(const Series& series, const SearchOptions& options, const std::vector<int>& gpus) {
  Problems problems;
  if (options.objective == Objective::cost && !series.scenario.cluster.gpu_price)
    problems.add({}, "--objective", "the cluster has no price",
                 "set cluster.gpu_price, such as --set cluster.gpu_price=2USD/h");
  if (series.scenario.jitter.compute > 0)
    problems.add({}, "jitter.compute", "a search compares steps without jitter",
                 "search with --set jitter.compute=0, then run the best with it");
  if (!series.scenario.cluster.other_gpus.empty())
    problems.add({}, "cluster.other_gpus", "a search takes GPUs of one kind",
                 "leave them out, then run the best with them");
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (std::ranges::find(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(i), gpus[i]) !=
        gpus.begin() + static_cast<std::ptrdiff_t>(i))
      problems.add({}, "--gpus", fmt::format("{} is named twice", gpus[i]), "name it once");
  for (const int count : gpus) {
    spec::Cluster cluster = series.scenario.cluster;
    cluster.gpus = count;
    for (const spec::Violation& violation : spec::violations(cluster))
      problems.add({}, "--gpus", fmt::format("{}: {}", count, violation.what), violation.hint);
  }
  problems.raise();
}

}  // namespace

SearchResult search(const Series& series, const SearchOptions& options) {
  const std::vector<int> gpus =
      options.gpus.empty() ? std::vector{series.scenario.cluster.gpus} : options.gpus;
  check(series, options, gpus);
  SearchResult result{.objective = options.objective, .own = split_of(series.scenario)};
  std::vector<Candidate> fitting;
  Reasons reasons;
  for (const int count : gpus) {
    const Field field(series, count, options.held);
    const std::vector<Frame> list = frames(series.scenario, count, options.held);
    for (Looked& looked : parallel(list.size(), options.jobs,
                                   [&](std::size_t i) { return field.look_at(list[i]); })) {
      result.considered += looked.considered;
      reasons.add(looked.reasons);
      fitting.insert(fitting.end(), looked.fitting.begin(), looked.fitting.end());
    }
  }
  Race race(series, options, std::move(fitting));
  race.run();
  result.best = race.best();
  result.simulated = race.simulated();
  reasons.add(race.reasons());
  result.losers = reasons.sorted();
  result.fitting = std::ssize(result.best);
  for (const Losers& row : result.losers)
    if (row.lost == Lost::behind) result.fitting += row.splits;
  result.legal = result.fitting;
  for (const Losers& row : result.losers)
    if (row.lost == Lost::does_not_fit) result.legal += row.splits;
  return result;
}

}  // namespace scapesim::study
