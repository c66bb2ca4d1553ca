// SPDX-License-Identifier: Apache-2.0
// Other frameworks' arguments -> a scenario: Megatron-LM command lines and the argument block of
// its logs, torchtitan job files, DeepSpeed configurations. What has no counterpart is named.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/load.hpp"

namespace scapesim::scenario {

/// What a file of arguments says in terms of a scenario.
struct ImportedArguments {
  std::string format;
  std::vector<Cell> cells;           ///< keys with TOML values, at most one of a key
  std::vector<std::string> origins;  ///< per cell: what it was read from, "--num-layers"
  std::vector<std::string> ignored;  ///< arguments that change nothing here or have no counterpart
  std::vector<std::string> notes;    ///< what was assumed, for people
};

/// One format: one function and one row.
struct ArgumentFormat {
  std::string_view name;
  std::string_view help;
  std::string_view looked_for;  ///< for the refusal of other files
  bool (*recognises)(std::string_view text);
  ImportedArguments (*read)(std::string_view text, const std::string& file);
};
std::span<const ArgumentFormat> argument_formats();

/// Reads a file's text with the format that recognises it. Throws InputError: none does, or a value
/// cannot be read, with file:line:column.
ImportedArguments import_arguments(std::string_view text, const std::string& file);

/// The scenario file: sections, every value with the argument it came from, notes as comments.
std::string scenario_toml(const ImportedArguments& arguments, std::string_view name);

bool recognises_megatron_arguments(std::string_view text);
ImportedArguments read_megatron_arguments(std::string_view text, const std::string& file);
bool recognises_torchtitan(std::string_view text);
ImportedArguments read_torchtitan(std::string_view text, const std::string& file);
bool recognises_deepspeed(std::string_view text);
ImportedArguments read_deepspeed(std::string_view text, const std::string& file);

}  // namespace scapesim::scenario
