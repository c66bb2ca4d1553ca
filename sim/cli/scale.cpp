// SPDX-License-Identifier: Apache-2.0
// scapesim scale: every series on several numbers of GPUs.
#include <fmt/format.h>
#include <memory>

#include "reports/csv.hpp"
#include "reports/json.hpp"
#include "reports/plot.hpp"
#include "reports/text.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  FormatOptions format;
  std::string gpus;
  bool weak = false;
  std::vector<std::string> against;
  std::string plot;
  std::string result;
};

/// Draws after the table is out: what was computed is not lost when nothing can draw.
int draw(const std::string& result, const std::string& file) {
  const reports::PlotOutcome outcome = reports::draw_scale(result, file);
  for (const std::string& line : outcome.messages) fmt::print(stderr, "{}\n", line);
  return outcome.drawing == reports::Drawing::done ? kDone : kFinding;
}

std::vector<std::string> inputs_of(const Options& options) {
  std::vector<std::string> files = {options.scenario.file};
  for (const std::string& text : options.against)
    files.push_back(parse_log(text, "--against").file);
  return files;
}

/// Tables as they are; logs are of the one series.
std::vector<study::Measured> measured_of(const Options& options,
                                         const std::vector<study::Series>& list) {
  std::vector<study::Measured> measured;
  for (const std::string& text : options.against) {
    const LogFile log = parse_log(text, "--against");
    if (log.file.empty()) refuse("--against", "the name of the file is empty", "");
    const bool table = log.file.ends_with(".csv");
    if (!table && list.size() != 1)
      refuse("--against",
             fmt::format("{} is a log, and the scenario has {} series", log.file, list.size()),
             "say with --series which one was run");
    const spec::Scenario& first = list.front().scenario;
    const std::vector<study::Measured> rows =
        table ? study::load_measured(log.file)
              : study::measured_of_log(log.file, log.gpus,
                                       first.series.empty() ? first.name : first.series);
    measured.insert(measured.end(), rows.begin(), rows.end());
  }
  return measured;
}

/// The figure and the breakdown beside it.
void check_plot(const Options& options) {
  if (options.plot.empty()) return;
  for (const std::filesystem::path& figure : reports::plot_names(options.plot))
    check_output("--plot", figure, inputs_of(options));
}

Output scale(const Options& options) {
  check_plot(options);
  check_output("--result", options.result, inputs_of(options));
  const std::vector<int> gpus = parse_counts(options.gpus, "--gpus");
  const std::vector<study::Series> list =
      load_series(options.scenario,
                  options.weak ? scenario::GpuCount::of_file : scenario::GpuCount::told_later);
  const std::vector<study::Measured> measured = measured_of(options, list);
  const study::Scale result =
      study::scale(list, gpus, options.weak ? study::Scaling::weak : study::Scaling::strong,
                   predict_options(options.scenario, engine::Driver::standalone));
  const std::vector<study::Comparison> against = study::compare(result.points, measured);

  Output output;
  const Format format = options.format.format();
  output.text = format == Format::json  ? reports::scale_json(result, against)
                : format == Format::csv ? reports::points_csv(result.points)
                                        : reports::scale_text(result, against);
  if (format == Format::text) output.notes = reports::warning_notes(result.points);
  if (!options.result.empty()) {
    const reports::Sources sources = sources_of(options.scenario, list);
    output.files.push_back({options.result, reports::scale_json(result, against, &sources)});
  }
  if (study::all_infeasible(result.points))
    output.code = kInfeasible;
  else if (!options.plot.empty())
    output.after = [json = reports::scale_json(result, against), file = options.plot] {
      return draw(json, file);
    };
  return output;
}

}  // namespace

Action declare_scale(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_scenario(app, options->scenario);
  app.add_option("--gpus", options->gpus, "Numbers of GPUs, e.g. --gpus 4,8,16,32,64")
      ->type_name("N,N,...")
      ->required();
  app.add_flag("--weak", options->weak,
               "Weak scaling: the global batch grows with the GPUs, in proportion to the file's "
               "cluster.gpus and global_batch (default: strong, it stays)");
  app.add_option("--against", options->against,
                 "Measured points beside the predicted: CSV with columns series,gpus,metric,value "
                 "(metrics step_time_s, computation_s, communication_s, tokens_per_s, mfu, "
                 "memory_B), or training logs (Megatron-LM, nanotron, torchtitan) of one series; a "
                 "log that does not print its GPUs is written FILE@64")
      ->allow_extra_args(false)
      ->type_name("FILE");
  add_file(app, "--plot", options->plot,
           "Draw step time and efficiency into FILE and the breakdown beside it "
           "(a.png, a-breakdown.png; png, pdf or svg). Needs a Python with matplotlib: "
           "$SCAPESIM_PYTHON, /usr/bin/python3 or python3; exit code 1 when there is none")
      ->type_name("FILE");
  add_file(app, "--result", options->result,
           "Write the result for `scapesim report`: as --json, with the scenario's text and the "
           "numbers behind it")
      ->type_name("FILE");
  add_json_and_csv(app, options->format);
  app.footer(
      "Example: scapesim scale scenarios/vista-llama-1.8b.toml --gpus 4,8,16,32,64 --against "
      "calib/data/vista-llama-1.8b.csv --plot scaling.png");
  return [options] { return scale(*options); };
}

}  // namespace scapesim::cli
