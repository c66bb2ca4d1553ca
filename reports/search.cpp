// SPDX-License-Identifier: Apache-2.0
#include "reports/search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "reports/json.hpp"
#include "reports/table.hpp"
#include "reports/text_parts.hpp"

namespace scapesim::reports {

namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;
using study::Split;

study::Point point_of(const study::Found& found) {
  return {found.scenario.name, found.scenario.series, found.scenario.cluster.gpus, found.run};
}

std::vector<study::Point> points_of(const study::SearchResult& result) {
  std::vector<study::Point> points;
  for (const study::Found& found : result.best) points.push_back(point_of(found));
  return points;
}

std::string schedule_text(const Split& split) {
  if (split.pp == 1) return "-";
  const std::string name(name_of(split.schedule));
  return split.virtual_stages == 1 ? name : fmt::format("{} x{}", name, split.virtual_stages);
}

std::string recompute_text(const Split& split) {
  const std::string name(name_of(split.recompute));
  return split.recompute_layers ? fmt::format("{} of {} layers", name, *split.recompute_layers)
                                : name;
}

/// "tp 8, pp 4, dp 2, micro-batch 1, 1f1b, recompute none, zero1": what is not 1.
std::string short_text(const Split& split) {
  std::vector<std::string> parts{fmt::format("{} GPUs", split.gpus)};
  const auto add = [&](std::string_view name, int degree) {
    if (degree > 1) parts.push_back(fmt::format("{} {}", name, degree));
  };
  add("tp", split.tp);
  if (split.sequence_parallel) parts.back() += " with sequence";
  add("pp", split.pp);
  add("cp", split.cp);
  add("ep", split.ep);
  add("dp", split.gpus / (split.tp * split.pp * split.cp));
  parts.push_back(fmt::format("micro-batch {}", split.micro_batch));
  if (split.pp > 1) parts.push_back(schedule_text(split));
  parts.push_back("recompute " + recompute_text(split));
  if (split.sharding != spec::Sharding::none) parts.emplace_back(name_of(split.sharding));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> best_row(const study::Found& found, std::size_t rank, TimeUnit unit) {
  const Split& s = found.split;
  const result::Run& run = found.run;
  const auto share = [&](Seconds part) { return percent(part / run.step_time); };
  const std::string tp = fmt::format("{}{}", s.tp, s.sequence_parallel ? "s" : "");
  return {fmt::format("{}", rank),
          fmt::format("{}", s.gpus),
          tp,
          fmt::format("{}", s.pp),
          fmt::format("{}", s.cp),
          fmt::format("{}", s.ep),
          fmt::format("{}", s.gpus / (s.tp * s.pp * s.cp)),
          schedule_text(s),
          fmt::format("{}", s.micro_batch),
          recompute_text(s),
          std::string(name_of(s.sharding)),
          in_unit(run.step_time, unit),
          percent(run.mfu),
          share(run.breakdown.exposed_communication),
          share(run.breakdown.bubble),
          gib(run.memory.total + run.memory.context)};
}

std::string best_text(const study::SearchResult& result) {
  Seconds longest;
  for (const study::Found& found : result.best) longest = std::max(longest, found.run.step_time);
  const TimeUnit unit = unit_for(longest);
  Rows rows;
  for (std::size_t i = 0; i < result.best.size(); ++i)
    rows.push_back(best_row(result.best[i], i + 1, unit));
  return table({{""},
                {"GPUs"},
                {"tp"},
                {"pp"},
                {"cp"},
                {"ep"},
                {"dp"},
                {"schedule", Align::left},
                {"micro-batch"},
                {"recompute", Align::left},
                {"sharding", Align::left},
                {fmt::format("step {}", unit.name)},
                {"MFU"},
                {"exposed comm."},
                {"bubble"},
                {"memory GiB"}},
               rows);
}

std::string losers_text(const study::SearchResult& result) {
  Rows rows;
  for (const study::Losers& row : result.losers) {
    std::string nearest;
    if (row.nearest)
      nearest = fmt::format("{}{:.4g} s: {}", row.nearest->simulated ? "" : "above ",
                            row.nearest->time.si(), short_text(row.nearest->split));
    if (row.smallest)
      nearest = fmt::format("{} GiB: {}", gib(row.smallest->need), short_text(row.smallest->split));
    rows.push_back({std::string(name_of(row.lost)), row.reason, fmt::format("{}", row.splits),
                    std::move(nearest)});
  }
  return table({{"", Align::left},
                {"because of", Align::left},
                {"splits"},
                {"nearest of them", Align::left}},
               rows);
}

/// How to run the first of them: what it has other than the scenario.
std::string command_text(const study::SearchResult& result, const std::string& file) {
  const study::Found& best = result.best.front();
  std::string out = fmt::format("scapesim run {}", file);
  if (!best.scenario.series.empty()) out += fmt::format(" --series \"{}\"", best.scenario.series);
  const std::vector<study::KeyValue> own = study::keys_of(result.own);
  const std::vector<study::KeyValue> keys = study::keys_of(best.split);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i] != own[i]) out += fmt::format(" --set {}={}", keys[i].first, keys[i].second);
  if (const auto& layers = best.scenario.parallelism.stage_layers; !layers.empty())
    out += fmt::format(" --set parallelism.stage_layers={}", fmt::join(layers, ","));
  return out;
}

Json split_json(const Split& split) {
  Json json = Json::object();
  for (const auto& [key, value] : study::keys_of(split)) json[std::string(key)] = value;
  return json;
}

Json found_json(const study::Found& found) {
  const study::Point point = point_of(found);
  Json json = {{"set", split_json(found.split)}};
  json["stage_layers"] = found.scenario.parallelism.stage_layers;
  json["run"] = Json::parse(runs_json({&point, 1}));
  return json;
}

Json losers_json(const study::Losers& row) {
  Json json = {{"lost", name_of(row.lost)},
               {"reason", row.reason},
               {"splits", row.splits},
               {"fastest", nullptr},
               {"smallest", nullptr}};
  if (row.smallest)
    json["smallest"] = {{"set", split_json(row.smallest->split)},
                        {"memory_B", row.smallest->need.si()}};
  if (row.nearest)
    json["fastest"] = {{"set", split_json(row.nearest->split)},
                       {"step_time_s", row.nearest->time.si()},
                       {"simulated", row.nearest->simulated}};
  return json;
}

}  // namespace

std::string search_text(const study::SearchResult& result, const std::string& file) {
  std::string out;
  if (result.best.empty())
    out = "no split fits\n";
  else
    out = fmt::format("{}: best splits by {}\n\n{}\n{}\n", result.best.front().scenario.name,
                      name_of(result.objective), best_text(result), command_text(result, file));
  out += fmt::format(
      "\n{} splits considered, {} legal, {} fit in memory, {} simulated; a lower bound of the step "
      "left the rest out\n\n",
      result.considered, result.legal, result.fitting, result.simulated);
  return out + losers_text(result) + rests_on(points_of(result));
}

std::string search_json(const study::SearchResult& result) {
  Json best = Json::array(), losers = Json::array();
  for (const study::Found& found : result.best) best.push_back(found_json(found));
  for (const study::Losers& row : result.losers) losers.push_back(losers_json(row));
  const Json json = {{"schema", "scapesim.search/1"},
                     {"objective", name_of(result.objective)},
                     {"considered", result.considered},
                     {"legal", result.legal},
                     {"fitting", result.fitting},
                     {"simulated", result.simulated},
                     {"plans", best},
                     {"losers", losers}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace scapesim::reports
