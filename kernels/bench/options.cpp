// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "sim/base/error.hpp"

namespace scapesim::bench {

namespace {

/// The families of some words, each once, in the order of the table; "all" is all.
std::vector<Family> families_of(const std::vector<std::string>& words, std::string& wrong) {
  std::vector<Family> chosen;
  for (const std::string& word : words)
    if (word != "all" && !find_named<Family>(word))
      wrong += "FAMILY: no family " + word + " (" + did_you_mean(word, all_names<Family>()) + ")\n";
  for (const Named<Family>& row : names<Family>())
    if (std::ranges::find(words, "all") != words.end() ||
        std::ranges::find(words, row.name) != words.end())
      chosen.push_back(row.value);
  return chosen;
}

}  // namespace

std::variant<Options, Ended> parse_options(int argc, const char* const* argv) {
  Options options;
  std::vector<std::string> words;
  CLI::App app(
      "Measures a CUDA device for `scapesim calibrate`. Clocks are read, never set. Exit codes: 0 "
      "done, 2 bad options, 70 the device failed, 77 no CUDA device, 130 interrupted: the rows "
      "measured until then stand in the file.",
      "scapesim-bench");
  app.add_option("FAMILY", words, "env membw kernels gemm attention xfer nccl, or all")->required();
  app.add_option("-o,--output", options.output, "file of rows, one JSON object per line; a new one")
      ->required();
  bool quick = false;
  app.add_flag("--quick", quick, "fewer sizes and shapes, under five minutes");
  app.add_option("--samples", options.rules.samples, "samples of each of two rounds")
      ->check(CLI::Range(50, 100000));
  app.add_option("--shapes", options.shapes, "matrix products: lines name,pass,m,n,k");
  app.add_option("--machine", options.machine, "name of the machine in the rows");
  app.add_option("--device", options.device, "number of the CUDA device")
      ->check(CLI::Range(0, 255));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const int code = app.exit(error, text, text);
    return Ended{text.str(), code == 0 ? 0 : 2};
  }
  std::string wrong;
  options.families = families_of(words, wrong);
  if (!wrong.empty()) return Ended{wrong, 2};
  options.extent = quick ? Extent::quick : Extent::full;
  return options;
}

}  // namespace scapesim::bench
