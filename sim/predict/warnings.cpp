// SPDX-License-Identifier: Apache-2.0
#include "sim/predict/warnings.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>

#include "sim/base/unit_text.hpp"
#include "sim/cost/kernels.hpp"
#include "sim/plan/uneven.hpp"
#include "sim/predict/used_keys.hpp"
#include "sim/result/metrics.hpp"
#include "sim/spec/strategy_keys.hpp"

namespace scapesim {

namespace {

/// Under this share of the line rate a transport is usually not the one that was meant.
constexpr double kSlowTransport = 0.3;

void warn_of_transport(std::vector<result::Warning>& list, const spec::Scenario& scenario,
                       const cost::Profile& profile) {
  if (!profile.has("network.transport_cap_Bps") || spec::data_parallel_size(scenario) == 1) return;
  const BytesPerSecond cap(profile.number("network.transport_cap_Bps"));
  const double share = cap / scenario.cluster.nic_bandwidth;
  if (share >= kSlowTransport) return;
  list.push_back(
      {"slow-transport",
       fmt::format("the transport of profile {} moves {} per NIC, {:.0f} % of its {} line rate "
                   "(TCP sockets, or RDMA switched off): a faster NIC changes nothing here",
                   profile.id, text_of(cap), 100 * share,
                   text_of(scenario.cluster.nic_bandwidth))});
}

/// Factors of two by which a value lies outside a calibrated range; 0 inside.
double octaves_outside(double value, double lowest, double highest) {
  return std::max({0.0, std::log2(lowest / value), std::log2(value / highest)});
}

void warn_of_extrapolation(std::vector<result::Warning>& list, const spec::Scenario& scenario,
                           const cost::Profile& profile) {
  const auto sequence = static_cast<double>(scenario.training.sequence);
  const cost::Curve& curve = profile.curve("attention.forward.d128");
  if (!curve.covers(sequence))
    list.push_back(
        {"extrapolation",
         fmt::format("sequence {} is outside the attention curves ({:g} to {:g} tokens)",
                     scenario.training.sequence, curve.points.front()[0], curve.points.back()[0]),
         octaves_outside(sequence, curve.points.front()[0], curve.points.back()[0])});
  const int widest = static_cast<int>(cost::kSampledHeadDims.back());
  const int narrowest = static_cast<int>(cost::kSampledHeadDims.front());
  const int head_dim = scenario.model.head_dim;
  if (head_dim < narrowest || head_dim > widest)
    list.push_back({"extrapolation",
                    fmt::format("head_dim {} is outside the attention curves "
                                "({} to {})",
                                head_dim, narrowest, widest),
                    octaves_outside(head_dim, narrowest, widest)});
}

/// Latency per ring step is known for bulk collectives; small ones may be faster or slower.
void warn_of_small_collectives(std::vector<result::Warning>& list, const cost::Profile& profile,
                               const graph::StepGraph& graph) {
  if (!profile.has("network.smallest_fitted_B")) return;
  const Bytes smallest(profile.number("network.smallest_fitted_B"));
  constexpr std::size_t kShown = 4;
  std::vector<std::string> names;
  double octaves = 0;
  for (const graph::Collective& collective : graph.collectives) {
    std::string name = result::term_name(collective.name) + " (" + text_of(collective.bytes) + ")";
    const bool bulk = !collective.phases.empty() && !collective.phases[0].loads.empty();
    if (!bulk || collective.bytes >= smallest) continue;
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    octaves = std::max(octaves, octaves_outside(collective.bytes.si(), smallest.si(), INFINITY));
  }
  if (names.empty()) return;
  const std::size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  list.push_back(
      {"extrapolation",
       fmt::format("smaller than the collectives ({} and up) that the latency of profile "
                   "{} was fitted to: {}{}",
                   text_of(smallest), profile.id, fmt::join(names, ", "),
                   more > 0 ? fmt::format(" and {} more", more) : ""),
       octaves});
}

/// Methods whose one exchange begins behind the last backward pass.
bool sends_at_the_end(spec::Method method) {
  using enum spec::Method;
  return method == scape || method == demo || method == oktopk || method == onebit_adam ||
         method == local_sgd;
}

/// The optimizer that a method is by itself.
std::optional<spec::Optimizer> own_optimizer(spec::Method method) {
  if (method == spec::Method::dgc || method == spec::Method::demo) return spec::Optimizer::sgd;
  if (method == spec::Method::onebit_adam) return spec::Optimizer::adamw;
  return std::nullopt;
}

/// "dense", "dense with fsdp".
std::string method_text(const spec::Strategy& strategy) {
  const std::string method(name_of(strategy.method));
  if (strategy.sharding == spec::Sharding::none) return method;
  return fmt::format("{} with {}", method, name_of(strategy.sharding));
}

void warn_of_no_effect(std::vector<result::Warning>& list, const spec::Scenario& scenario) {
  const spec::Strategy& strategy = scenario.strategy;
  const std::string_view method = name_of(strategy.method);
  if (sends_at_the_end(strategy.method) && scenario.training.overlap_gradients)
    list.push_back({"no-effect",
                    fmt::format("training.overlap_gradients changes nothing for {}: what it sends "
                                "exists only after the last backward pass",
                                method)});
  const bool alone = scenario.series.empty();  // else it may be said for the series beside this one
  for (const spec::StrategyKey& key : spec::strategy_keys())
    if (alone && key.is_set(strategy) && !key.is_read(scenario))
      list.push_back(
          {"no-effect", fmt::format("strategy.{} has no effect with {}: it is read by {}", key.name,
                                    method_text(strategy), key.read_by)});
  const auto own = own_optimizer(strategy.method);
  if (own && *own != scenario.training.optimizer)
    list.push_back(
        {"no-effect",
         fmt::format("training.optimizer changes nothing for {}: it is an optimizer of its own, "
                     "with the state of {}",
                     method, name_of(*own))});
}

/// Keys of training and parallelism that speak of what this step does not have.
void warn_of_idle_keys(std::vector<result::Warning>& list, const spec::Scenario& scenario) {
  const spec::Training& training = scenario.training;
  const spec::Parallelism& p = scenario.parallelism;
  if (training.attention_dropout > 0 && training.attention != spec::AttentionCore::unfused)
    list.push_back(
        {"no-effect",
         fmt::format("training.attention_dropout costs nothing in attention = \"{}\", which "
                     "writes no probabilities",
                     name_of(training.attention))});
  if (p.split_messages && (p.tp == 1 || p.pp == 1))
    list.push_back(
        {"no-effect", p.pp == 1 ? "parallelism.split_messages changes nothing without a pipeline"
                                : "parallelism.split_messages changes nothing with tp = 1"});
  if (training.activation_offload && training.offload_layers == 0)
    list.push_back(
        {"no-effect", "training.activation_offload of offload_layers = 0 moves nothing"});
}

/// Calls that a forced algorithm or protocol cannot run, which took the fastest instead.
void warn_of_unforced(std::vector<result::Warning>& list, const spec::Scenario& scenario,
                      const graph::StepGraph& graph) {
  std::set<std::string> names;
  const auto look = [&](const auto& call) {
    const spec::ForcedCollective* forced = spec::of_kind(scenario.collectives, name_of(call.kind));
    if (forced == nullptr || call.group_size == 1) return;
    const bool runs = (!forced->algorithm || call.algorithm == name_of(*forced->algorithm)) &&
                      (!forced->protocol || call.protocol == name_of(*forced->protocol));
    if (!runs)
      names.insert(
          fmt::format("{} ({} {})", result::term_name(call.name), call.algorithm, call.protocol));
  };
  for (const graph::Collective& collective : graph.collectives)
    if (!collective.phases.empty() && !collective.phases[0].loads.empty()) look(collective);
  for (const graph::RankClass& rank_class : graph.classes)
    for (const graph::Operation& operation : rank_class.operations)
      for (const graph::Inside& inside : operation.inside) look(inside);
  if (!names.empty())
    list.push_back({"not-forced", fmt::format("[collectives] cannot force {}: it keeps what runs",
                                              fmt::join(names, ", "))});
}

/// Slow parts of the machine that the job does not run on.
void warn_of_idle_stragglers(std::vector<result::Warning>& list, const spec::Scenario& scenario) {
  const spec::Cluster& cluster = scenario.cluster;
  if (cluster.stragglers.empty() && cluster.other_gpus.empty()) return;
  const auto differs = [](const plan::Pace& pace) { return pace.gpu > 0 || pace.slowdown > 1; };
  if (std::ranges::none_of(plan::paces_of(scenario), differs))
    list.push_back({"no-effect",
                    "cluster.stragglers and cluster.other_gpus name no GPU that this job runs on"});
}

void warn_of_unread(std::vector<result::Warning>& list, const spec::Model& model) {
  if (!model.unread.empty())
    list.push_back({"unread", fmt::format("of the imported model not simulated, may change the "
                                          "computation: {}",
                                          fmt::join(model.unread, ", "))});
}

/// A profile of another part, or a mistyped one: rates above the GPU's data sheet.
void warn_of_data_sheet(std::vector<result::Warning>& list, const spec::Scenario& scenario,
                        const cost::Profile& profile) {
  const BytesPerSecond achieved(profile.number("hbm.bandwidth_Bps"));
  if (achieved > scenario.cluster.gpu.hbm_bandwidth)
    list.push_back(
        {"above-data-sheet",
         fmt::format("profile {} reaches {} of memory bandwidth, cluster.hbm_bandwidth "
                     "is {}: is it a profile of this GPU?",
                     profile.id, text_of(achieved), text_of(scenario.cluster.gpu.hbm_bandwidth))});
}

/// "A100" of "A100 SXM 80GB, eight per node" and of "A100-SXM-80GB": letters, then three digits.
std::set<std::string> parts_in(std::string_view text) {
  std::set<std::string> parts;
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    const bool letter = c >= 'A' && c <= 'Z', digit = c >= '0' && c <= '9';
    if (letter || digit) {
      word += c;
      continue;
    }
    constexpr std::size_t kDigits = 3;
    const std::size_t first = word.find_first_of("0123456789");
    const bool is_part = first != std::string::npos && first > 0 &&
                         word.size() == first + kDigits &&
                         word.find_first_not_of("0123456789", first) == std::string::npos;
    if (is_part) parts.insert(word);
    word.clear();
  }
  return parts;
}

/// Kernels calibrated on another GPU than the cluster's, by the names of both.
void warn_of_other_part(std::vector<result::Warning>& list, const cost::Profile& profile,
                        const std::string& gpu, std::string_view where) {
  const std::set<std::string> described = parts_in(profile.machine), there = parts_in(gpu);
  if (described.empty() || there.empty()) return;
  for (const std::string& part : there)
    if (described.contains(part)) return;
  list.push_back(
      {"other-gpu",
       fmt::format("profile {} describes {}, {} has {}: its kernels are those of another "
                   "GPU (scapesim list calibrations)",
                   profile.id, profile.machine, where, gpu)});
}

void warn_of_other_parts(std::vector<result::Warning>& list, const spec::Scenario& scenario,
                         const cost::Profile& profile) {
  const spec::Cluster& cluster = scenario.cluster;
  warn_of_other_part(list, profile, cluster.gpu.name, "the cluster");
  for (std::size_t i = 0; i < profile.others.size() && i < cluster.other_gpus.size(); ++i)
    warn_of_other_part(list, profile.others[i], cluster.other_gpus[i].gpu.name,
                       cluster.other_gpus[i].cluster);
}

void warn_of_assumptions(std::vector<result::Warning>& list, const cost::Profile& profile,
                         const graph::StepGraph& graph) {
  constexpr std::size_t kShown = 4;
  std::string keys;
  std::size_t count = 0;
  for (const std::string& key : used_keys(profile, graph)) {
    const auto number = profile.numbers.find(key);
    if (number == profile.numbers.end() || number->second.origin.kind != cost::Provenance::assumed)
      continue;
    if (++count <= kShown) keys += (keys.empty() ? "" : ", ") + key;
  }
  if (count > kShown)
    keys += fmt::format(" and {} more (scapesim calibrate --show {})", count - kShown, profile.id);
  if (!keys.empty())
    list.push_back({"assumed", "assumed, not measured, in profile " + profile.id + ": " + keys});
}

}  // namespace

std::vector<result::Warning> warnings_of(const spec::Scenario& scenario,
                                         const cost::Profile& profile,
                                         const graph::StepGraph& graph,
                                         const engine::Timeline& timeline) {
  std::vector<result::Warning> list;
  warn_of_transport(list, scenario, profile);
  warn_of_other_parts(list, scenario, profile);
  warn_of_no_effect(list, scenario);
  warn_of_idle_keys(list, scenario);
  warn_of_idle_stragglers(list, scenario);
  warn_of_unforced(list, scenario, graph);
  warn_of_unread(list, scenario.model);
  warn_of_extrapolation(list, scenario, profile);
  warn_of_data_sheet(list, scenario, profile);
  warn_of_small_collectives(list, profile, graph);
  warn_of_assumptions(list, profile, graph);
  if (!timeline.steady)
    list.push_back({"unsteady", "steps did not repeat before the cap on simulated steps"});
  return list;
}

}  // namespace scapesim
