// SPDX-License-Identifier: Apache-2.0
// scapesim calibrate: logs -> a profile with its residuals and gaps; --show prints a profile.
#include "calib/calibrate.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "calib/import.hpp"
#include "reports/calibrated.hpp"
#include "reports/json.hpp"
#include "reports/text.hpp"
#include "sim/base/error.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/scenario/load.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  std::vector<std::string> inputs;
  std::string output;
  std::string residuals;
  std::string base = "gh200-datasheet";
  std::string cluster;
  std::string scenario;
  std::string series;
  std::string show;
  FormatOptions format;
};

/// Files that the output must not replace; --base may be renewed in place.
std::vector<std::string> inputs_of(const Options& options) {
  std::vector<std::string> files = {options.scenario};
  for (const std::string& text : options.inputs) files.push_back(parse_log(text, "INPUT").file);
  return files;
}

spec::Scenario scenario_of(const Options& options) {
  std::vector<spec::Scenario> list =
      scenario::load_scenarios(options.scenario, {}, scenario::GpuCount::told_later);
  if (!options.series.empty())
    std::erase_if(list, [&](const spec::Scenario& s) { return s.series != options.series; });
  if (list.size() != 1)
    refuse("--series", fmt::format("{} has {} series of that name", options.scenario, list.size()),
           "name the one that was run");
  return list.front();
}

calib::TrainingLog training_log(const Options& options, const LogFile& input,
                                calib::Observations observations) {
  std::optional<int> gpus = input.gpus;
  for (const calib::StepSample& step : observations.steps)
    if (!gpus) gpus = step.gpus;
  if (!gpus)
    refuse("INPUT", fmt::format("{} does not say how many GPUs it ran on", input.file),
           fmt::format("write {}@64", input.file));
  return {std::move(observations), scenario::with_gpus(scenario_of(options), *gpus, false)};
}

calib::CalibrationInput read_input(const Options& options) {
  calib::CalibrationInput input{.base = cost::load_profile(options.base, "."),
                                .id = std::filesystem::path(options.output).stem().string(),
                                .observations = {},
                                .logs = {},
                                .cluster = {}};
  if (!options.cluster.empty()) input.cluster = scenario::load_cluster(options.cluster);
  for (const std::string& text : options.inputs) {
    const LogFile file = parse_log(text, "INPUT");
    calib::Observations observations = calib::import_file(file.file);
    if (!observations.steps.empty() && !options.scenario.empty())
      input.logs.push_back(training_log(options, file, std::move(observations)));
    else
      input.observations.push_back(std::move(observations));
  }
  return input;
}

/// What was read, what was not, what was fitted, what stayed.
std::string report_of(const calib::CalibrationInput& input, const calib::Calibration& result) {
  std::string text;
  const auto add_file = [&](const calib::Observations& file) {
    text += fmt::format(
        "read {} ({}): {} collectives, {} copies, {} memory passes, {} GEMMs, {} other kernels, {} "
        "steps; {} lines not used\n",
        file.file, file.format, file.collectives.size(), file.copies.size(), file.memory.size(),
        file.gemms.size(), file.kernels.size(), file.steps.size(), file.unparsed.count);
    for (const Problem& warning : file.warnings)
      text += fmt::format("  warning: {} {}\n", warning.what, warning.hint);
    for (const auto& line : file.unparsed.malformed_examples)
      text += fmt::format("  line {} could not be read: {}\n", line.number, line.text);
  };
  for (const calib::Observations& file : input.observations) add_file(file);
  for (const calib::TrainingLog& log : input.logs) add_file(log.observations);
  text += "\n" + result.report;
  for (const std::string& gap : result.gaps) text += "not calibrated: " + gap + "\n";
  return text;
}

Output calibrate(const Options& options) {
  if (!options.show.empty()) {
    const cost::Profile profile = cost::load_profile(options.show, ".");
    return {.text =
                options.format.json ? cost::profile_json(profile) : reports::profile_text(profile)};
  }
  if (options.inputs.empty()) refuse("INPUT", "nothing to calibrate from", "name logs, or --show");
  if (!options.output.ends_with(".json"))
    refuse("-o", "the profile to write must end in .json", "for example -o mycluster.json");
  check_output("-o", options.output, inputs_of(options));
  check_output("--residuals", options.residuals, inputs_of(options));
  const calib::CalibrationInput input = read_input(options);
  const calib::Calibration result = calib::calibrate(input);
  const std::string json = cost::profile_json(result.profile);
  Output output{.text = options.format.json ? json : report_of(input, result),
                .files = {{options.output, json}}};
  if (!options.residuals.empty())
    output.files.push_back({options.residuals, reports::calibration_json(result, options.inputs)});
  return output;
}

}  // namespace

Action declare_calibrate(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("INPUT", options->inputs,
                 "Logs and bench files; the format is detected. A training log that does not print "
                 "its number of GPUs is written FILE@64");
  add_file(app, "-o,--output", options->output, "Profile to write (.json)");
  add_file(app, "--residuals", options->residuals,
           "Write every fitted row as measured and as fitted, for `scapesim report`")
      ->type_name("FILE");
  app.add_option(
      "--base", options->base,
      "Profile whose numbers stay where the input says nothing (default gh200-datasheet)");
  app.add_option("--cluster", options->cluster,
                 "Cluster the collectives ran on: what their links are");
  app.add_option("--scenario", options->scenario, "Scenario that the training logs ran");
  app.add_option("--series", options->series, "Variant of that scenario");
  app.add_option("--show", options->show, "Print a profile as a sheet instead");
  add_json(app, options->format);
  app.footer(
      "Example: scapesim calibrate all_reduce.log -o mine.json --base gh200-datasheet --cluster "
      "vista\n"
      "         scapesim calibrate run4.log run8.log run16.log -o mine.json --scenario "
      "scenarios/vista-llama-1.8b.toml --series AdamS\n"
      "         scapesim calibrate --show gh200-vista-sockets");
  return [options] { return calibrate(*options); };
}

}  // namespace scapesim::cli
