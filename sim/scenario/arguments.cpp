// SPDX-License-Identifier: Apache-2.0
// The table of formats, and the scenario file that comes out.
#include "sim/scenario/arguments.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/scenario/keys.hpp"

namespace scapesim::scenario {

std::span<const ArgumentFormat> argument_formats() {
  static constexpr std::array<ArgumentFormat, 3> kFormats = {{
      {"megatron-lm", "a Megatron-LM command line, script, or the arguments in its log",
       "--num-layers and --hidden-size, or num_layers .... 24", recognises_megatron_arguments,
       read_megatron_arguments},
      {"deepspeed", "a DeepSpeed configuration (JSON)",
       "train_micro_batch_size_per_gpu or zero_optimization", recognises_deepspeed, read_deepspeed},
      {"torchtitan", "a torchtitan job file (TOML)", "[training] with seq_len and [model] flavor",
       recognises_torchtitan, read_torchtitan},
  }};
  return kFormats;
}

ImportedArguments import_arguments(std::string_view text, const std::string& file) {
  for (const ArgumentFormat& format : argument_formats())
    if (format.recognises(text)) {
      ImportedArguments arguments = format.read(text, file);
      arguments.format = format.name;
      return arguments;
    }
  std::vector<std::string> looked_for;
  for (const ArgumentFormat& format : argument_formats())
    looked_for.push_back(fmt::format("{}: {}", format.name, format.looked_for));
  throw InputError(Problem{{.file = file},
                           "",
                           "arguments of no known framework",
                           fmt::format("looked for {}", fmt::join(looked_for, "; "))});
}

std::string scenario_toml(const ImportedArguments& arguments, std::string_view name) {
  std::string out = fmt::format("# From {} arguments.\n", arguments.format);
  for (const std::string& note : arguments.notes) out += fmt::format("# {}\n", note);
  if (!arguments.ignored.empty())
    out += fmt::format("# Without a counterpart or an effect here: {}\n",
                       fmt::join(arguments.ignored, " "));
  out += fmt::format("\nname = \"{}\"\n", name);
  for (const std::string_view section : section_names()) {
    std::string lines;
    for (std::size_t i = 0; i < arguments.cells.size(); ++i) {
      const Cell& cell = arguments.cells[i];
      const std::size_t dot = cell.key.find('.');
      if (cell.key.substr(0, dot) == section && !section.empty())
        lines += fmt::format("{} = {}  # {}\n", cell.key.substr(dot + 1), cell.text,
                             arguments.origins[i]);
    }
    if (!lines.empty()) out += fmt::format("\n[{}]\n{}", section, lines);
  }
  return out;
}

}  // namespace scapesim::scenario
