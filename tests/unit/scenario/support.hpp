// SPDX-License-Identifier: Apache-2.0
// A scenario text in a temporary file, and what loading it says.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"

namespace scapesim::scenario {

/// A folder of its own for one test, gone at its end.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "scapesim-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path file(const std::string& name, const std::string& text) const {
    // Not write_file: it waits for the disk, and there are thousands of these.
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

 private:
  std::filesystem::path folder_;
};

using Set = std::vector<std::string>;

inline std::vector<spec::Scenario> load_text(const std::string& text, const Set& set = {}) {
  const Scratch scratch;
  return load_scenarios(scratch.file("scenario.toml", text), set);
}

/// The problems of a refused load; empty when it is accepted.
template <class Load>
std::vector<Problem> problems_of(Load load) {
  try {
    load();
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

inline const std::string kSound = R"(
[model]
preset = "llama-1.8b"
[training]
global_batch = 1024
micro_batch = 8
optimizer = "adams"
[strategy]
method = "scape"
density = 0.01
[cluster]
preset = "vista"
gpus = 64
[calibration]
profile = "gh200-vista-sockets"
)";

}  // namespace scapesim::scenario
