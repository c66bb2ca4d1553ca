// SPDX-License-Identifier: Apache-2.0
// Which communication method goes with which sharding and with which other keys, and why not.
#include "sim/spec/method_rules.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"

namespace scapesim::spec {

namespace {

void check_table(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  const MethodRule& rule = rule_of(strategy.method);
  if (std::ranges::find(rule.shardings, strategy.sharding) != rule.shardings.end()) return;
  std::vector<std::string_view> words;
  for (const Sharding sharding : rule.shardings) words.push_back(name_of(sharding));
  list.push_back({"strategy.sharding",
                  fmt::format("{} does not go with {}: {}", name_of(strategy.sharding),
                              name_of(strategy.method), rule.why),
                  fmt::format("{}", fmt::join(words, " or "))});
}

/// How a model may be split under a method.
void check_model_split(const Scenario& scenario, Violations& list) {
  const Method method = scenario.strategy.method;
  if (method == Method::dense) return;
  if (scenario.parallelism.ep > 1)
    list.push_back({"parallelism.ep",
                    fmt::format("{} with split experts is not simulated", name_of(method)),
                    "set ep = 1"});
  if (method == Method::local_sgd && scenario.parallelism.pp > 1)
    list.push_back({"parallelism.pp", "local steps of a pipeline are not simulated", "set pp = 1"});
  if ((method == Method::zeropp || method == Method::qsdp) && scenario.parallelism.pp > 1)
    list.push_back(
        {"parallelism.pp",
         fmt::format("{} inside the stages of a pipeline is not simulated", name_of(method)),
         "set pp = 1, or method = \"dense\""});
}

void check_kernels(const Scenario& scenario, Violations& list) {
  const Method method = scenario.strategy.method;
  if (scenario.strategy.kernels == Kernels::fused || method == Method::dense ||
      method == Method::scape)
    return;
  list.push_back({"strategy.kernels",
                  fmt::format("the passes of a released {} have not been counted", name_of(method)),
                  "leave it out: one kernel per phase"});
}

void check_chunks(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  const std::int64_t coefficients = std::int64_t{strategy.dct_chunk} * strategy.dct_chunk;
  if (strategy.method == Method::demo && strategy.dct_topk > coefficients)
    list.push_back(
        {"strategy.dct_topk",
         fmt::format("{} of the {} coefficients of a chunk of {} x {}", strategy.dct_topk,
                     coefficients, strategy.dct_chunk, strategy.dct_chunk),
         fmt::format("at most {}", coefficients)});
}

void check_density(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  if (strategy.density >= 1 || selects_by_density(strategy.method)) return;
  if (strategy.method == Method::dense)
    list.push_back({"strategy.density",
                    fmt::format("dense sends everything, not {}", strategy.density),
                    "set strategy.method = \"scape\" or leave density out"});
  else
    list.push_back({"strategy.density",
                    fmt::format("{} has no density, {} would change nothing",
                                name_of(strategy.method), strategy.density),
                    "leave density out, or choose scape, topk, dgc or oktopk"});
}

}  // namespace

bool selects_by_density(Method method) {
  return method == Method::scape || method == Method::topk || method == Method::dgc ||
         method == Method::oktopk;
}

std::span<const MethodRule> method_rules() {
  using enum Sharding;
  constexpr std::string_view kWholeResidual =
      "every rank keeps what it did not send of all elements, and gets all that others sent: to "
      "share the optimizer's state, parameters would be gathered whole again";
  static const MethodRule rows[] = {
      {Method::dense, {none, zero1, zero2, zero3, fsdp, hsdp}, "", 1},
      {Method::scape, {none, zero1}, "it needs every rank's gradients whole", 0.01},
      {Method::topk, {none}, kWholeResidual, 0.01},
      {Method::dgc, {none}, kWholeResidual, 0.001},
      {Method::demo, {none}, "every rank keeps its own momentum of all elements", 1},
      {Method::qsdp,
       {fsdp, zero3},
       "it quantises what sharded parameters and gradients exchange",
       1},
      {Method::zeropp, {zero3}, "it is an extension of ZeRO-3", 1},
      {Method::oktopk, {none}, kWholeResidual, 0.01},
      {Method::onebit_adam,
       {none},
       "it keeps both moments and its errors of all elements on every rank",
       1},
      {Method::powersgd, {none}, "its factors are of whole matrices, on every rank", 1},
      {Method::local_sgd,
       {none},
       "ranks differ between outer steps, so that none can hold a share for another",
       1},
  };
  return rows;
}

const MethodRule& rule_of(Method method) {
  for (const MethodRule& row : method_rules())
    if (row.method == method) return row;
  throw InternalError("method without a rule");
}

void check_method(const Scenario& scenario, Violations& list) {
  check_table(scenario, list);
  check_model_split(scenario, list);
  check_kernels(scenario, list);
  check_chunks(scenario, list);
  check_density(scenario, list);
}

}  // namespace scapesim::spec
