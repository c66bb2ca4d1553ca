// SPDX-License-Identifier: Apache-2.0
// Every NAME.err beside this file is what reading the profile NAME.json has to say. Runs in the
// repository's root, so that names in the texts are stable.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/cost/profile.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path kFolder = "tests/golden/cost";

std::vector<fs::path> files_with(const std::string& extension) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == extension) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string refusal(fs::path file) {
  try {
    scapesim::cost::load_profile(file.replace_extension(".json").string(), {});
  } catch (const scapesim::InputError& error) {
    return std::string(error.what()) + "\n";
  }
  return "accepted\n";
}

}  // namespace

TEST_CASE("a faulty profile is refused with every problem, its place and a way out") {
  const std::vector<fs::path> files = files_with(".err");
  REQUIRE(files.size() >= 20);
  for (const fs::path& file : files) {
    INFO(file);
    CHECK(refusal(file) == scapesim::read_file(file, "golden"));
  }
}

TEST_CASE("every faulty profile has its golden text") {
  for (const fs::path& file : files_with(".json")) {
    INFO(file);
    CHECK(fs::exists(fs::path(file).replace_extension(".err")));
  }
}
