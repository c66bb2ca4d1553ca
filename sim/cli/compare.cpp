// SPDX-License-Identifier: Apache-2.0
// scapesim compare: scenarios side by side, and which term makes the difference.
#include "reports/compare.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "reports/text.hpp"
#include "sim/base/error.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/study/side_by_side.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::vector<std::string> set;
  std::vector<std::string> with;
  std::string interval = "on";
  std::string per = "step";
  bool detail = false;
  FormatOptions format;
};

/// The series of a file under the overrides of the call and one more.
void add_series(std::vector<study::Series>& list, const Options& options, const std::string& file,
                const std::string& with) {
  ScenarioOptions scenario;
  scenario.file = file;
  scenario.set = options.set;
  scenario.interval = options.interval;
  if (!with.empty()) scenario.set.push_back(with);
  for (study::Series& series : load_series(scenario)) {
    if (!with.empty())
      series.scenario.series += (series.scenario.series.empty() ? "" : ", ") + with;
    list.push_back(std::move(series));
  }
}

/// Problems of one column's change: it is the last override of its call.
void take_problems(const InputError& error, const Options& options, std::size_t with,
                   Problems& problems) {
  const auto same = [](const Problem& a, const Problem& b) {
    return a.place.file == b.place.file && a.place.line == b.place.line && a.key == b.key &&
           a.what == b.what;
  };
  for (Problem problem : error.problems()) {
    const bool of_change = problem.place.file == "--set" &&
                           problem.place.line == static_cast<int>(options.set.size()) + 1;
    if (of_change) problem.place.file = "--with", problem.place.line = static_cast<int>(with);
    const auto& told = problems.list();
    if (std::ranges::none_of(told, [&](const Problem& other) { return same(other, problem); }))
      problems.add(problem.place, problem.key, problem.what, problem.hint);
  }
}

/// Every series of every file, as it is and under each change; all that is wrong with any of them.
std::vector<study::Series> all_series(const Options& options) {
  std::vector<study::Series> list;
  Problems problems;
  for (const std::string& file : options.files)
    for (std::size_t i = 0; i <= options.with.size(); ++i) try {
        add_series(list, options, file, i == 0 ? "" : options.with[i - 1]);
      } catch (const InputError& error) {
        take_problems(error, options, i, problems);
      }
  problems.raise();
  return list;
}

/// Options of a study file, which says all by itself; scenarios leave those of the call.
Options with_study(Options options) {
  using enum scenario::StudyKey::Type;
  static constexpr scenario::StudyKey kKeys[] = {{"scenarios", texts}, {"set", texts},
                                                 {"with", texts},      {"per", text},
                                                 {"detail", flag},     {"interval", text}};
  if (options.files.size() != 1) return options;
  const auto study = scenario::read_study(options.files.front(), "compare", kKeys);
  if (!study) return options;
  if (!options.set.empty() || !options.with.empty() || options.detail)
    refuse("", fmt::format("{} is a study: it says all itself", options.files.front()),
           "edit it, or give scenarios");
  options.files.clear();
  for (const std::string& file : study->texts("scenarios"))
    options.files.push_back((study->file.parent_path() / file).lexically_normal().string());
  if (options.files.empty())
    throw InputError(Problem{
        {.file = study->file.string()}, "study.scenarios", "missing", "a list of scenario files"});
  options.set = study->texts("set");
  options.with = study->texts("with");
  options.detail = study->flag("detail");
  if (!study->text("per").empty()) options.per = study->text("per");
  if (!study->text("interval").empty()) options.interval = study->text("interval");
  return options;
}

Output compare(const Options& given) {
  const Options options = with_study(given);
  const std::vector<study::Series> series = all_series(options);
  if (series.size() < 2)
    refuse("", "one scenario of one series is nothing to compare",
           "name another file, or a change: --with KEY=VALUE");
  const auto per = find_named<study::Per>(options.per);
  if (!per)
    refuse("--per", fmt::format("\"{}\" is unknown", options.per),
           did_you_mean(options.per, all_names<study::Per>()));
  const study::SideBySideOptions how{
      .per = *per, .detail = options.detail ? study::Detail::terms : study::Detail::breakdown};
  ScenarioOptions scenario;
  scenario.interval = options.interval;
  const study::SideBySide table =
      study::side_by_side(series, how, predict_options(scenario, engine::Driver::standalone));
  const Format format = options.format.format();
  Output output{.text = format == Format::json  ? reports::compare_json(table)
                        : format == Format::csv ? reports::compare_csv(table)
                                                : reports::compare_text(table)};
  if (format == Format::text) output.notes = reports::warning_notes(table.points);
  if (study::all_infeasible(table.points)) output.code = kInfeasible;
  return output;
}

}  // namespace

Action declare_compare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("SCENARIO", options->files,
                 "Scenario files; every series of each is a column, the first is what the others "
                 "are compared with")
      ->required();
  app.add_option("--with", options->with,
                 "Another column per series: with this key changed, e.g. --with "
                 "cluster.nic_bandwidth=800Gbps (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--set", options->set, "Override a key in all of them (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--per", options->per,
                 "What times are for: step, or million-tokens where steps differ in size")
      ->type_name("step|million-tokens");
  app.add_flag("--detail", options->detail,
               "Divide the step into the terms of run --explain step_time");
  app.add_option("--interval", options->interval,
                 "90 % intervals of the differences: on or off (default: on)")
      ->type_name("on|off");
  add_json_and_csv(app, options->format);
  app.footer(
      "Example: scapesim compare scenarios/vista-llama-1.8b.toml scenarios/"
      "vista-llama-1.8b-ndr.toml --set cluster.gpus=64");
  return [options] { return compare(*options); };
}

}  // namespace scapesim::cli
