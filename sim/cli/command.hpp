// SPDX-License-Identifier: Apache-2.0
// What a subcommand is: it declares its options, and later turns them into an output. Nothing is
// printed or written before all of it is known.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace scapesim::cli {

/// Exit codes, as documented for users.
inline constexpr int kDone = 0;
inline constexpr int kFinding = 1;     ///< budget exceeded, figure not drawn
inline constexpr int kBadInput = 2;    ///< nothing on stdout, nothing written
inline constexpr int kInfeasible = 3;  ///< the reason is the result
inline constexpr int kOurFault = 70;

struct File {
  std::filesystem::path path;
  std::string content;
};

/// All that a command leaves behind.
struct Output {
  std::string text = {};                ///< to stdout
  std::vector<File> files = {};         ///< written before stdout
  std::vector<std::string> notes = {};  ///< to stderr
  std::function<int()> after = {};      ///< runs last; its code counts when it is not 0
  int code = kDone;
};

using Action = std::function<Output()>;

/// One subcommand: one file and one row.
struct Command {
  std::string_view name;
  std::string_view help;
  Action (*declare)(CLI::App& app);  ///< the action is called after parsing, at most once
};
std::span<const Command> commands();

Action declare_run(CLI::App& app);
Action declare_scale(CLI::App& app);
Action declare_sweep(CLI::App& app);
Action declare_merge(CLI::App& app);
Action declare_search(CLI::App& app);
Action declare_breakeven(CLI::App& app);
Action declare_collective(CLI::App& app);
Action declare_topology(CLI::App& app);
Action declare_list(CLI::App& app);
Action declare_calibrate(CLI::App& app);
Action declare_validate(CLI::App& app);
Action declare_import(CLI::App& app);
Action declare_explain(CLI::App& app);
Action declare_report(CLI::App& app);
Action declare_compare(CLI::App& app);
Action declare_sensitivity(CLI::App& app);
Action declare_plan(CLI::App& app);

/// The whole program but for its exit: parses, acts, writes. Throws what actions throw.
int run_program(std::span<const std::string> arguments);

}  // namespace scapesim::cli
