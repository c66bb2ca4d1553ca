// SPDX-License-Identifier: Apache-2.0
// The table of commands, parsing, and the one place that writes.
#include <array>
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/base/version.hpp"
#include "sim/cli/command.hpp"

namespace scapesim::cli {
namespace {

constexpr auto kCommands = std::to_array<Command>({
    {"run", "Predict one training step: its time, where it goes, memory", declare_run},
    {"scale", "Predict a curve over numbers of GPUs, measured points beside it", declare_scale},
    {"sweep", "Predict many points of a scenario's keys, into a folder", declare_sweep},
    {"merge", "Join the parts of a sweep that ran apart", declare_merge},
    {"compare", "Lay scenarios side by side: which term makes the difference", declare_compare},
    {"sensitivity", "What a step depends on, what bounds it, how short it could be",
     declare_sensitivity},
    {"search", "Find the best legal split over GPUs, and say why the others lose", declare_search},
    {"breakeven", "Find the network speed and GPU count at which a method stops paying",
     declare_breakeven},
    {"plan", "Plan a training: how many GPUs, where, how long, at what cost", declare_plan},
    {"collective", "Predict a collective over sizes, as nccl-tests prints it", declare_collective},
    {"topology", "Show a cluster's network: counts, bisection, routes", declare_topology},
    {"list", "Show what there is: models, clusters, calibrations, keys, ...", declare_list},
    {"calibrate", "Turn logs into a profile that states its own error", declare_calibrate},
    {"validate", "Compare predictions with published measurements", declare_validate},
    {"explain", "Hold a measured step against its prediction, part by part", declare_explain},
    {"import", "Turn another framework's arguments into a scenario", declare_import},
    {"report", "Draw results: figures and one page that opens anywhere", declare_report},
});

constexpr std::string_view kFooter =
    "Example: scapesim scale scenarios/vista-llama-1.8b.toml --gpus 4,8,16,32,64\n"
    "Exit codes: 0 done, 1 a finding, 2 bad input, 3 infeasible plan (the reason is the result), "
    "70 our fault.\n";

/// Help with descriptions wrapped at a width that terminals have.
class Wrapped : public CLI::Formatter {
  std::string make_option_desc(const CLI::Option* option) const override {
    constexpr std::size_t kWidth = 68;
    std::string out, line;
    std::istringstream words(option->get_description());
    for (std::string word; words >> word;) {
      if (!line.empty() && line.size() + 1 + word.size() > kWidth)
        out += std::exchange(line, "") + "\n";
      line += (line.empty() ? "" : " ") + word;
    }
    return out + line;
  }
};

[[noreturn]] void refuse(std::string key, std::string what, std::string hint) {
  throw InputError(Problem{{}, std::move(key), std::move(what), std::move(hint)});
}

/// A word in the command's place that is no command.
void check_command(std::span<const std::string> arguments) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  if (arguments.empty())
    refuse("", "no command", fmt::format("one of: {}", fmt::join(names, ", ")));
  const std::string& word = arguments[0];
  if (word.starts_with("-")) return;
  for (const std::string_view name : names)
    if (name == word) return;
  refuse("", fmt::format("\"{}\" is not a command", word), did_you_mean(word, names));
}

/// Arguments that no option took: misspelt options, one value too many.
void check_extras(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty()) names.push_back("--" + option->get_lnames()[0]);
  const std::vector<std::string_view> known(names.begin(), names.end());
  Problems problems;
  for (const std::string& extra : app.remaining())
    if (extra.starts_with("-"))
      problems.add({}, extra, "is not an option of " + app.get_name(),
                   did_you_mean(extra.substr(0, extra.find('=')), known));
    else
      problems.add({}, "", fmt::format("unexpected argument \"{}\"", extra));
  problems.raise();
}

/// Returns false when there is nobody to read any more.
bool write_stdout(std::string_view text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return true;
  if (errno == EPIPE) return false;
  refuse("", "cannot write standard output: " + std::generic_category().message(errno), "");
}

int deliver(const Output& output) {
  for (const File& file : output.files) write_file(file.path, file.content);
  for (const std::string& note : output.notes) fmt::print(stderr, "{}\n", note);
  if (!write_stdout(output.text)) return output.code;
  const int after = output.after ? output.after() : kDone;
  return after != kDone ? after : output.code;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int run_program(std::span<const std::string> arguments) {
  CLI::App app("Predicts the time, memory and scaling of distributed training.", "scapesim");
  app.footer(std::string(kFooter));
  app.set_version_flag("--version", fmt::format("scapesim {}", version()));
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<Wrapped>());
  Action action;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.help));
    sub->allow_extras();
    Action declared = command.declare(*sub);
    sub->final_callback([&action, declared, sub] {
      action = [declared, sub] {
        check_extras(*sub);
        return declared();
      };
    });
  }
  check_command(arguments);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    for (CLI::App* sub : app.get_subcommands()) check_extras(*sub);
    const std::string command = arguments[0].starts_with("-") ? "" : arguments[0] + " ";
    refuse("", error.what(), fmt::format("see scapesim {}--help", command));
  }
  if (!action) refuse("", "no command", "");
  return deliver(action());
}

}  // namespace scapesim::cli
