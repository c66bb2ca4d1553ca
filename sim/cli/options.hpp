// SPDX-License-Identifier: Apache-2.0
// Options that several subcommands share.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/json.hpp"
#include "sim/predict/predict.hpp"
#include "sim/scenario/load.hpp"
#include "sim/scenario/study_file.hpp"
#include "sim/study/scale.hpp"
#include "sim/study/splits.hpp"

namespace scapesim::cli {

enum class Format { text, json, csv };

/// --json and --csv exclude each other.
struct FormatOptions {
  bool json = false;
  bool csv = false;
  Format format() const { return json ? Format::json : csv ? Format::csv : Format::text; }
};
void add_json(CLI::App& app, FormatOptions& options);
void add_json_and_csv(CLI::App& app, FormatOptions& options);

/// SCENARIO, --set, --series, --interval.
struct ScenarioOptions {
  std::string file;
  std::vector<std::string> set;
  std::string series;
  std::string interval = "on";
};
void add_scenario(CLI::App& app, ScenarioOptions& options);

/// The scenario, overrides, series and interval that a study file names (keys scenario, set,
/// series, interval). Throws InputError when the command line gave some of them too: a study says
/// all by itself.
void take_scenario(const scenario::StudyFile& study, ScenarioOptions& options);

/// The scenario's series (all, or the one of --series) with their profiles. Throws InputError.
std::vector<study::Series> load_series(const ScenarioOptions& options,
                                       scenario::GpuCount gpus = scenario::GpuCount::of_file);

/// What a --result file says about where its numbers come from.
reports::Sources sources_of(const ScenarioOptions& options,
                            const std::vector<study::Series>& series);

PredictOptions predict_options(const ScenarioOptions& options, engine::Driver driver);

/// Keys after --keep. Throws InputError for one that a search does not vary.
study::Held held_keys(const std::vector<std::string>& keep);

/// Positive integers from "4,8,16", in order. Throws InputError.
std::vector<int> parse_counts(const std::string& text, const std::string& option);

/// 0.1 of "10%", "10 %" or "0.1": above 0, at most 1. Throws InputError.
double share_of(std::string_view text, const std::string& option);

/// Adds `--option FILE`; an empty name is refused.
CLI::Option* add_file(CLI::App& app, const std::string& option, std::string& file,
                      const std::string& help);

/// Throws InputError when the file of an output option (nothing when empty) is one of the inputs
/// or cannot lie there: no such folder, or a folder itself. To be called before the work.
void check_output(const std::string& option, const std::filesystem::path& file,
                  const std::vector<std::string>& inputs);

/// FILE, or FILE@GPUS for a training log that does not print its world size.
struct LogFile {
  std::string file;
  std::optional<int> gpus;
};
LogFile parse_log(const std::string& text, const std::string& option);

/// Throws InputError about the value of an option.
[[noreturn]] void refuse(const std::string& option, const std::string& what,
                         const std::string& hint);

}  // namespace scapesim::cli
