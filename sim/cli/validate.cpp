// SPDX-License-Identifier: Apache-2.0
// scapesim validate: predictions against published measurements.
#include "sim/study/validate.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "reports/json.hpp"
#include "reports/text.hpp"
#include "sim/base/file.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  FormatOptions format;
  std::string suite = "vista";
  bool summary = false;
};

Output validate(const Options& options) {
  const auto suite = std::ranges::find(study::suites(), options.suite, &study::Suite::name);
  if (suite == study::suites().end())
    refuse("SUITE", fmt::format("\"{}\" is not a suite", options.suite), "known: vista, jupiter");
  study::Validation validation = suite->run(data_folder());
  if (options.summary) validation.rows.clear();
  return {.text = options.format.json ? reports::validation_json(validation)
                                      : reports::validation_text(validation),
          .code = validation.passed ? kDone : kFinding};
}

}  // namespace

Action declare_validate(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("SUITE", options->suite,
                 "Suite of measurements: vista (default), the runs of calib/data/vista_scape.csv; "
                 "jupiter, the same curves on another machine");
  app.add_flag("--summary", options->summary, "Errors by group and the budget, without the rows");
  add_json(app, options->format);
  app.footer(
      "Exit code 1 when an error is above its limit in calib/data/vista-budget.csv.\n"
      "Example: scapesim validate vista --json");
  return [options] { return validate(*options); };
}

}  // namespace scapesim::cli
