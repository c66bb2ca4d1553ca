// SPDX-License-Identifier: Apache-2.0
// Nodes from dumps of NCCL and nvidia-smi, written for these tests: what is read, what is named as
// missing, and that a cut file is an error.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/base/file.hpp"
#include "topologies/node_import.hpp"

using namespace scapesim;

namespace {

const std::filesystem::path kFolder = "tests/golden/topologies";  // run in the repository

std::vector<std::filesystem::path> dumps() {
  std::vector<std::filesystem::path> list;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".xml" || entry.path().extension() == ".txt")
      list.push_back(entry.path());
  std::ranges::sort(list);
  return list;
}

std::string text_of_file(const std::filesystem::path& path) { return read_file(path, "test"); }

}  // namespace

TEST_CASE("every dump gives the node that stands beside it") {
  REQUIRE(dumps().size() == 4);
  for (const auto& path : dumps()) {
    INFO(path.filename().string());
    const std::string name = path.filename().string();
    const auto node = topology::read_node(text_of_file(path), name);
    std::filesystem::path expected = path;
    expected.replace_extension(".toml");
    CHECK(topology::node_toml(node, name) == text_of_file(expected));
  }
}

TEST_CASE("a dump cut at any byte is an error, or all of the node, never a crash") {
  for (const auto& path : dumps()) {
    const std::string whole = text_of_file(path);
    const std::string node = topology::node_toml(topology::read_node(whole, "x"), "x");
    const bool xml = path.extension() == ".xml";
    for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
      INFO(path.filename().string() << ", " << length << " bytes");
      try {
        const auto read = topology::read_node(whole.substr(0, length), "x");
        CHECK_FALSE((xml && whole.substr(length).find('<') != std::string::npos));
        CHECK(topology::node_toml(read, "x") == node);
      } catch (const InputError& error) {
        CHECK_FALSE(error.problems().empty());
      }
    }
  }
}

TEST_CASE("what is no dump is refused with what was looked for") {
  for (const char* text : {"", "hello", "<system/>", "<graph/>", "GPU0 GPU1\nGPU0 X FOO\n",
                           "GPU0 GPU1\nGPU1 X NV4\n", "GPU0 GPU1\nGPU0 X\n"}) {
    INFO(text);
    CHECK_THROWS_AS(topology::read_node(text, "x"), InputError);
  }
}
