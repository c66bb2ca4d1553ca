// SPDX-License-Identifier: Apache-2.0
// scapesim report: result files -> figures and one page that opens anywhere.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "reports/plot.hpp"
#include "sim/base/error.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"

namespace scapesim::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kFormats = {"png", "svg", "pdf"};

struct Options {
  std::vector<std::string> results;
  std::string output;
  std::string formats = "png,svg,pdf";
  std::string date = "today";
  FormatOptions format;
};

/// Today (UTC), or the day of $SOURCE_DATE_EPOCH, so that builds that set it repeat byte for byte.
std::string today() {
  std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0')
    now = static_cast<std::time_t>(std::strtoll(epoch, nullptr, 10));
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

std::string date_of(const std::string& text) {
  if (text == "today") return today();
  if (text == "none") return "";
  constexpr std::string_view kShape = "0000-00-00";
  bool is_date = text.size() == kShape.size();
  for (std::size_t i = 0; is_date && i < text.size(); ++i)
    is_date = kShape[i] == '-' ? text[i] == '-' : text[i] >= '0' && text[i] <= '9';
  if (!is_date)
    refuse("--date", fmt::format("\"{}\" is not a date", text), "2026-01-31, today or none");
  return text;
}

void check_formats(const std::string& text) {
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (std::ranges::find(kFormats, rest.substr(0, comma)) == kFormats.end())
      refuse("--formats", fmt::format("\"{}\" cannot be drawn", rest.substr(0, comma)),
             did_you_mean(rest.substr(0, comma), kFormats));
    if (comma == rest.size()) return;
    rest.remove_prefix(comma + 1);
  }
}

/// A folder, or the name of one to be made.
void check_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored))
    refuse("-o", fmt::format("{} is not a folder", folder.string()), "name another");
}

std::string json_of(const Options& options, const std::vector<std::string>& messages) {
  const nlohmann::ordered_json document = {
      {"schema", "scapesim.report/1"},
      {"page", (fs::path(options.output) / "index.html").string()},
      {"messages", messages}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

Output report(const Options& options) {
  check_formats(options.formats);
  check_folder(options.output);
  const reports::PlotOutcome outcome = reports::draw_report(
      options.results, options.output, {.formats = options.formats, .date = date_of(options.date)});
  switch (outcome.drawing) {
    case reports::Drawing::done:
      return {.text = options.format.json ? json_of(options, outcome.messages)
                                          : joined(outcome.messages)};
    case reports::Drawing::bad_input:
      return {.notes = outcome.messages, .code = kBadInput};
    case reports::Drawing::failed:
      return {.notes = {"no report drawn: " + outcome.messages.back()}, .code = kFinding};
  }
  throw InternalError("unknown outcome of drawing");
}

}  // namespace

Action declare_report(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("RESULT", options->results,
                 "Results of other commands: what --json prints, or --result FILE, which also "
                 "holds the scenario's text, the numbers behind it and the operations of a step; "
                 "profiles (calib/profiles/*.json, or your own) are drawn too")
      ->required();
  add_file(app, "-o,--output", options->output,
           "Folder for the figures and index.html; made when missing, other files in it stay")
      ->type_name("DIR")
      ->required();
  app.add_option("--formats", options->formats,
                 "Of the figures: some of png,svg,pdf (default: all; the page holds its own)")
      ->type_name("F,F");
  app.add_option("--date", options->date,
                 "In the corner of every figure: 2026-01-31, none, or today (default; UTC, or the "
                 "day of $SOURCE_DATE_EPOCH)");
  add_json(app, options->format);
  app.footer(
      "Needs a Python with matplotlib: $SCAPESIM_PYTHON, /usr/bin/python3 or python3; exit code 1 "
      "when there is none.\n"
      "Example: scapesim scale scenarios/vista-llama-1.8b.toml --gpus 4,16,64 --json > scale.json\n"
      "         scapesim report scale.json -o out");
  return [options] { return report(*options); };
}

}  // namespace scapesim::cli
