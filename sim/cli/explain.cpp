// SPDX-License-Identifier: Apache-2.0
// scapesim explain: a measured step against the prediction.
#include "sim/study/explain.hpp"

#include <memory>

#include "calib/import.hpp"
#include "reports/explained.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  FormatOptions format;
  std::string trace;
  std::string log;
};

Output explain(const Options& options) {
  if (options.trace.empty() == options.log.empty())
    refuse("--trace", "one measured file is needed", "--trace KINETO.json or --log TRAINING.log");
  const std::vector<study::Series> series = load_series(options.scenario);
  if (series.size() > 1)
    refuse("--series", "the scenario has several series", "name the one that was measured");
  const calib::Observations observed =
      calib::import_file(options.trace.empty() ? options.log : options.trace);
  const study::Explained explained = study::explain(
      series.front(), observed, predict_options(options.scenario, engine::Driver::standalone));
  return {.text = options.format.json ? reports::explained_json(explained)
                                      : reports::explained_text(explained)};
}

}  // namespace

Action declare_explain(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_scenario(app, options->scenario);
  add_file(app, "--trace", options->trace,
           "PyTorch profiler trace of one rank (.json or .json.gz), with ProfilerStep marks")
      ->type_name("KINETO");
  add_file(app, "--log", options->log,
           "Training log; Megatron-LM's with --timing-log-level 2 tells the parts")
      ->type_name("LOG");
  add_json(app, options->format);
  app.footer("Example: scapesim explain mine.toml --log train.log");
  return [options] { return explain(*options); };
}

}  // namespace scapesim::cli
