// SPDX-License-Identifier: Apache-2.0
// Every NAME.err beside this file is what loading NAME.toml, with the overrides in NAME.set if
// there are any, has to say. Runs in the repository's root, so that names in the texts are stable.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path kFolder = "tests/golden/scenario";

std::vector<fs::path> files_with(const std::string& extension) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == extension) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string refusal(fs::path file) {
  const std::vector<std::string> set = lines_of(fs::path(file).replace_extension(".set"));
  try {
    scapesim::scenario::load_scenarios(file.replace_extension(".toml"), set);
  } catch (const scapesim::InputError& error) {
    return std::string(error.what()) + "\n";
  }
  return "accepted\n";
}

}  // namespace

TEST_CASE("a faulty scenario is refused with every problem, its place and a way out") {
  const std::vector<fs::path> files = files_with(".err");
  REQUIRE(files.size() >= 150);
  for (const fs::path& file : files) {
    INFO(file);
    CHECK(refusal(file) == scapesim::read_file(file, "golden"));
  }
}

TEST_CASE("at least thirty combinations of a recipe that cannot be are refused with a hint") {
  // Every key is sound by itself: model, training, parallelism and strategy do not go together.
  int combinations = 0;
  for (const fs::path& file : files_with(".err")) {
    const std::string text = scapesim::read_file(file, "golden");
    const bool recipe = text.find(": training.") != std::string::npos ||
                        text.find(": parallelism.") != std::string::npos ||
                        text.find(": strategy.") != std::string::npos ||
                        text.find(": model.") != std::string::npos;
    const bool malformed = text.find("is needed") != std::string::npos ||
                           text.find("unknown") != std::string::npos ||
                           text.find("is outside") != std::string::npos ||
                           text.find("not understood") != std::string::npos ||
                           text.find("missing") != std::string::npos;
    if (recipe && !malformed && text.find(" (") != std::string::npos) ++combinations;
  }
  CHECK(combinations >= 60);
}

TEST_CASE("every faulty scenario has its golden text") {
  for (const fs::path& file : files_with(".toml")) {
    INFO(file);
    CHECK(fs::exists(fs::path(file).replace_extension(".err")));
  }
}
