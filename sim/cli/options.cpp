// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/options.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"
#include "sim/scenario/one_series.hpp"

namespace scapesim::cli {

namespace fs = std::filesystem;

void refuse(const std::string& option, const std::string& what, const std::string& hint) {
  throw InputError(Problem{{}, option, what, hint});
}

void add_json(CLI::App& app, FormatOptions& options) {
  app.add_flag("--json", options.json,
               "JSON on standard output, SI units in the keys (default: aligned text)");
}

void add_json_and_csv(CLI::App& app, FormatOptions& options) {
  add_json(app, options);
  app.add_flag("--csv", options.csv, "Comma-separated values, one row per point")
      ->excludes("--json");
}

void add_scenario(CLI::App& app, ScenarioOptions& options) {
  app.add_option("SCENARIO", options.file, "Scenario file, e.g. scenarios/vista-llama-1.8b.toml")
      ->required();
  app.add_option("--set", options.set,
                 "Override a key of the file, as often as needed, e.g. --set strategy.density=0.1 "
                 "--set 'strategy.offload=[\"residual\"]'; keys: scapesim list keys")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--series", options.series,
                 "Only this series of a scenario with variants (default: all), e.g. --series AdamS")
      ->type_name("NAME");
  app.add_option("--interval", options.interval,
                 "90 % interval of the step time from the spread of the calibration: on or off "
                 "(default: on)")
      ->type_name("on|off");
}

void take_scenario(const scenario::StudyFile& study, ScenarioOptions& options) {
  const std::string file = study.file.string();
  if (!options.set.empty() || !options.series.empty() || options.interval != "on")
    refuse("", fmt::format("{} is a study: it says its scenario and overrides itself", file),
           "edit it, or give a scenario");
  if (study.text("scenario").empty())
    throw InputError(
        Problem{{.file = file}, "study.scenario", "missing", "the path of a scenario file"});
  options.file = study.path("scenario").lexically_normal().string();
  options.set = study.texts("set");
  options.series = study.text("series");
  if (!study.text("interval").empty()) options.interval = study.text("interval");
}

std::vector<study::Series> load_series(const ScenarioOptions& options, scenario::GpuCount gpus) {
  if (options.interval != "on" && options.interval != "off")
    refuse("--interval", fmt::format("\"{}\" is neither on nor off", options.interval), "");
  std::vector<spec::Scenario> scenarios =
      scenario::load_series(options.file, options.set, gpus, options.series);
  if (!options.series.empty()) {
    std::vector<std::string> names;
    for (const spec::Scenario& s : scenarios) names.push_back(s.series);
    const auto found = std::ranges::find(names, options.series);
    if (found == names.end()) {
      const std::vector<std::string_view> known(names.begin(), names.end());
      refuse("--series", fmt::format("\"{}\" is not a series of {}", options.series, options.file),
             names.size() == 1 && names[0].empty() ? "it has no variants"
                                                   : did_you_mean(options.series, known));
    }
    scenarios = {scenarios[static_cast<std::size_t>(found - names.begin())]};
  }
  return study::with_profiles(std::move(scenarios),
                              std::filesystem::path(options.file).parent_path());
}

reports::Sources sources_of(const ScenarioOptions& options,
                            const std::vector<study::Series>& series) {
  reports::Sources sources{.file = options.file,
                           .text = read_file(options.file, "scenario"),
                           .set = options.set,
                           .calibrations = {}};
  for (const study::Series& one : series)
    if (std::ranges::none_of(sources.calibrations,
                             [&](const cost::Profile& p) { return p.id == one.profile.id; }))
      sources.calibrations.push_back(one.profile);
  return sources;
}

PredictOptions predict_options(const ScenarioOptions& options, engine::Driver driver) {
  PredictOptions predict{.driver = driver};
  if (options.interval == "off") predict.interval_draws = 0;
  return predict;
}

CLI::Option* add_file(CLI::App& app, const std::string& option, std::string& file,
                      const std::string& help) {
  const auto problem = [](const std::string& name) {
    return std::string(name.empty() ? "the name of the file is empty" : "");
  };
  return app.add_option(option, file, help)->check(problem);
}

void check_output(const std::string& option, const fs::path& file,
                  const std::vector<std::string>& inputs) {
  if (file.empty()) return;
  std::error_code ignored;
  for (const std::string& input : inputs)
    if (fs::equivalent(file, input, ignored))
      refuse(option, fmt::format("{} is an input of this call", file.string()),
             "name another file");
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, ignored))
    refuse(option, fmt::format("there is no folder {}", folder.string()), "");
  if (fs::is_directory(file, ignored))
    refuse(option, fmt::format("{} is a folder", file.string()), "");
}

LogFile parse_log(const std::string& text, const std::string& option) {
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || fs::exists(text)) return {text, {}};
  return {text.substr(0, at), parse_counts(text.substr(at + 1), option).front()};
}

study::Held held_keys(const std::vector<std::string>& keep) {
  std::vector<std::string_view> known;
  for (const auto& [key, value] : study::keys_of(study::Split{}))
    if (key != "cluster.gpus") known.push_back(key);
  study::Held held;
  for (const std::string& key : keep) {
    if (std::ranges::find(known, key) == known.end())
      refuse("--keep", fmt::format("\"{}\" is not a key that a search varies", key),
             did_you_mean(key, known));
    held.insert(key);
  }
  return held;
}

std::vector<int> parse_counts(const std::string& text, const std::string& option) {
  std::vector<int> counts;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    int count = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (failure != std::errc{} || end != word.data() + word.size() || count < 1)
      refuse(option, fmt::format("\"{}\" is not a count of GPUs", word), "for example 4,8,16");
    counts.push_back(count);
    if (comma == rest.size()) return counts;
    rest.remove_prefix(comma + 1);
  }
}

double share_of(std::string_view text, const std::string& option) {
  const std::string_view whole = text;
  double scale = 1;
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    scale = 100;
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool sound = failure == std::errc{} && end == text.data() + text.size();
  if (!sound || !(value > 0) || !(value <= scale))
    refuse(option, fmt::format("\"{}\" is not a share above 0, at most 100 %", whole),
           "for example 10%");
  return value / scale;
}

}  // namespace scapesim::cli
