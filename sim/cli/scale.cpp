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
  std::string against;
  std::string plot;
};

/// Draws after the table is out: what was computed is not lost when nothing can draw.
int draw(const std::string& result, const std::string& file) {
  const reports::PlotOutcome outcome = reports::draw_scale(result, file);
  for (const std::string& line : outcome.messages) fmt::print(stderr, "{}\n", line);
  return outcome.drawing == reports::Drawing::done ? kDone : kFinding;
}

/// The figure and the breakdown beside it.
void check_plot(const Options& options) {
  if (options.plot.empty()) return;
  for (const std::filesystem::path& figure : reports::plot_names(options.plot))
    check_output("--plot", figure, {options.scenario.file, options.against});
}

Output scale(const Options& options) {
  check_plot(options);
  const std::vector<int> gpus = parse_counts(options.gpus, "--gpus");
  const std::vector<study::Series> list =
      load_series(options.scenario,
                  options.weak ? scenario::GpuCount::of_file : scenario::GpuCount::told_later);
  std::vector<study::Measured> measured;
  if (!options.against.empty()) measured = study::load_measured(options.against);
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
  add_file(app, "--against", options->against,
           "Measured points beside the predicted: CSV with columns series,gpus,metric,value; "
           "metrics step_time_s, computation_s, communication_s, tokens_per_s, mfu, memory_B")
      ->type_name("FILE.csv");
  add_file(app, "--plot", options->plot,
           "Draw step time and efficiency into FILE and the breakdown beside it "
           "(a.png, a-breakdown.png; png, pdf or svg). Needs a Python with matplotlib: "
           "$SCAPESIM_PYTHON, /usr/bin/python3 or python3; exit code 1 when there is none")
      ->type_name("FILE");
  add_json_and_csv(app, options->format);
  app.footer(
      "Example: scapesim scale scenarios/vista-llama-1.8b.toml --gpus 4,8,16,32,64 --against "
      "calib/data/vista-llama-1.8b.csv --plot scaling.png");
  return [options] { return scale(*options); };
}

}  // namespace scapesim::cli
