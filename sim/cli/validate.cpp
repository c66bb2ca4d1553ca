// SPDX-License-Identifier: Apache-2.0
// scapesim validate: predictions against published measurements.
#include "sim/study/validate.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "reports/json.hpp"
#include "reports/scores.hpp"
#include "reports/text.hpp"
#include "sim/base/file.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/study/rows.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  FormatOptions format;
  std::string suite = "vista";
  std::string budget;
  std::string interval = "on";
  bool summary = false;
  bool all = false;
};

bool is_table(const std::string& name) { return name.ends_with(".csv"); }

[[noreturn]] void refuse_suite(const std::string& name) {
  std::vector<std::string_view> known;
  for (const study::Suite& suite : study::suites()) known.push_back(suite.name);
  for (const study::TableSuite& suite : study::table_suites()) known.push_back(suite.name);
  refuse("SUITE", fmt::format("\"{}\" is neither a suite nor a .csv file", name),
         did_you_mean(name, known));
}

Output score(const Options& options, const std::filesystem::path& table,
             const std::optional<std::filesystem::path>& budget) {
  const study::Scores scores = study::score_rows(
      table, {.budget = budget, .interval_draws = options.interval == "on" ? 16 : 0});
  const auto shown = options.summary ? reports::ShownRows::none
                     : options.all   ? reports::ShownRows::all
                                     : reports::ShownRows::worst;
  Output output{.code = scores.passed ? kDone : kFinding};
  switch (options.format.format()) {
    case Format::json:
      output.text = reports::scores_json(scores);
      break;
    case Format::csv:
      output.text = reports::scores_csv(scores);
      break;
    case Format::text:
      output.text = reports::scores_text(scores, shown);
      break;
  }
  return output;
}

Output validate_suite(const Options& options, const study::Suite& suite) {
  if (options.format.csv) refuse("--csv", "for tables of runs only", "take --json");
  study::Validation validation = suite.run(data_folder());
  if (options.summary) validation.rows.clear();
  return {.text = options.format.json ? reports::validation_json(validation)
                                      : reports::validation_text(validation),
          .code = validation.passed ? kDone : kFinding};
}

Output validate(const Options& options) {
  std::optional<std::filesystem::path> budget;
  if (!options.budget.empty()) budget = options.budget;
  if (is_table(options.suite)) return score(options, options.suite, budget);
  if (budget) refuse("--budget", "suites have their own", "for a table of runs only");
  const auto table =
      std::ranges::find(study::table_suites(), options.suite, &study::TableSuite::name);
  if (table != study::table_suites().end())
    return score(options, data_folder() / table->table, data_folder() / table->budget);
  const auto suite = std::ranges::find(study::suites(), options.suite, &study::Suite::name);
  if (suite == study::suites().end()) refuse_suite(options.suite);
  return validate_suite(options, *suite);
}

std::string suites_help() {
  std::string help = "Suite of measurements, or a table of your own runs (ROWS.csv). Suites: ";
  for (const study::Suite& suite : study::suites())
    help += fmt::format("{} ({}); ", suite.name, suite.help);
  for (const study::TableSuite& suite : study::table_suites())
    help += fmt::format("{} ({}); ", suite.name, suite.help);
  help.resize(help.size() - 2);
  return help;
}

}  // namespace

Action declare_validate(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("SUITE", options->suite, suites_help())->type_name("SUITE|ROWS.csv");
  app.add_flag("--summary", options->summary, "Errors by group and the budget, without the rows");
  app.add_flag("--all", options->all, "Every row of a table, not only the ten worst");
  add_file(app, "--budget", options->budget,
           "Limits for a table of runs: group,statistic,limit,why with groups like gpu=H100-SXM or "
           "all, and statistics median, mean, p90, worst, bias, infeasible")
      ->type_name("FILE");
  app.add_option("--interval", options->interval,
                 "on (default) or off: whether intervals are predicted for a table's rows")
      ->check(CLI::IsMember({"on", "off"}));
  add_json_and_csv(app, options->format);
  app.footer(
      "A table has a header and a row per run: columns named by scenario keys (model.preset, "
      "cluster.gpus,\nparallelism.tp, ...; empty cells say nothing), `scenario` for a file below "
      "them, `metric`, `value`,\nand for people `row`, `source`, `quality` (exact or not), "
      "`note`, `reason`.\nExit code 1 when an error is above its limit.\n"
      "Example: scapesim validate vista --json");
  return [options] { return validate(*options); };
}

}  // namespace scapesim::cli
