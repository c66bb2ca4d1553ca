// SPDX-License-Identifier: Apache-2.0
// scapesim import: another framework's arguments become a scenario file.
#include <fmt/format.h>
#include <memory>

#include "sim/base/file.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/scenario/arguments.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  std::string input;
  std::string output;
  std::string cluster;
  std::string profile;
  int gpus = 0;
  std::vector<std::string> set;
};

/// A key of the command line over what the arguments say.
void override(scenario::ImportedArguments& arguments, std::string key, std::string value,
              std::string_view option) {
  for (std::size_t i = arguments.cells.size(); i-- > 0;)
    if (arguments.cells[i].key == key) {
      arguments.cells.erase(arguments.cells.begin() + static_cast<std::ptrdiff_t>(i));
      arguments.origins.erase(arguments.origins.begin() + static_cast<std::ptrdiff_t>(i));
    }
  const Place place{.file = std::string(option)};
  arguments.cells.push_back({std::move(key), std::move(value), place, place});
  arguments.origins.push_back(std::string(option));
}

void add_options(const Options& options, scenario::ImportedArguments& arguments) {
  if (!options.cluster.empty())
    override(arguments, "cluster.preset", fmt::format("\"{}\"", options.cluster), "--cluster");
  if (!options.profile.empty())
    override(arguments, "calibration.profile", fmt::format("\"{}\"", options.profile), "--profile");
  if (options.gpus > 0)
    override(arguments, "cluster.gpus", fmt::format("{}", options.gpus), "--gpus");
  for (const std::string& text : options.set) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      refuse("--set", fmt::format("\"{}\" is no KEY=VALUE", text), "such as model.vocab=50304");
    std::string value = text.substr(equals + 1);
    const bool toml = value.find_first_not_of("0123456789.-+e_") == std::string::npos ||
                      value == "true" || value == "false" || value.starts_with("\"") ||
                      value.starts_with("[");
    override(arguments, text.substr(0, equals), toml ? value : fmt::format("\"{}\"", value),
             "--set");
  }
}

Output import(const Options& options) {
  check_output("-o", options.output, {options.input});
  const std::filesystem::path input(options.input);
  scenario::ImportedArguments arguments =
      scenario::import_arguments(read_file(input, "arguments"), options.input);
  add_options(options, arguments);
  Problems problems;
  scenario::scenario_of_cells(arguments.cells, std::nullopt, input, problems);
  problems.raise();
  const std::string name = options.output.empty()
                               ? input.stem().string()
                               : std::filesystem::path(options.output).stem().string();
  std::string text = scenario::scenario_toml(arguments, name);
  if (options.output.empty()) return {.text = std::move(text)};
  return {.files = {{options.output, std::move(text)}}, .notes = arguments.notes};
}

}  // namespace

Action declare_import(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  std::string formats;
  for (const scenario::ArgumentFormat& format : scenario::argument_formats())
    formats += fmt::format("{}{}", formats.empty() ? "" : "; ", format.help);
  app.add_option("FILE", options->input, "Arguments: " + formats)->required()->type_name("FILE");
  add_file(app, "-o", options->output, "Scenario file to write; standard output without it");
  app.add_option("--cluster", options->cluster, "Cluster preset or file")->type_name("CLUSTER");
  app.add_option("--gpus", options->gpus, "GPUs of the job, where the arguments do not tell")
      ->check(CLI::PositiveNumber);
  app.add_option("--profile", options->profile, "Calibration")->type_name("PROFILE");
  app.add_option("--set", options->set, "KEY=VALUE over what the arguments say")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.footer(
      "Example: scapesim import pretrain.sh --cluster dgx-h100 --profile h100-sxm -o mine.toml");
  return [options] { return import(*options); };
}

}  // namespace scapesim::cli
