// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

#include "kernels/bench/nvml.hpp"
#include "kernels/bench/row.hpp"
#include "sim/base/error.hpp"

using namespace scapesim;
using namespace scapesim::bench;

namespace {

const Provenance kProvenance = {"a-node", "a GPU", "", "2026-11-29", "scapesim-bench"};

Row some_row() {
  std::vector<double> samples(99, 2e-3);
  samples.push_back(4e-3);
  Row row{.kind = "memory",
          .name = "copy",
          .measured = {.samples = samples, .repeat_spread = 0.01},
          .bytes = 4e9,
          .copy_rate = 4e12};
  row.texts["shape"] = "with \"quotes\"\nand a break";
  return row;
}

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a row is one line with rate, share of the copy, spread and every sample") {
  const std::string line = line_of(some_row(), kProvenance);
  CHECK(std::ranges::count(line, '\n') == 1);
  CHECK(line.back() == '\n');
  const auto json = nlohmann::json::parse(line);
  CHECK(json["schema"] == "scapesim.bench/1");
  CHECK(json["samples_s"].size() == 100);
  CHECK(json["median_s"] == 2e-3);
  CHECK(json["mad_s"] == 0);
  CHECK(json["rate_Bps"].get<double>() == Approx(2e12));
  CHECK(json["copy_share"].get<double>() == Approx(0.5));
  CHECK(json["repeat_spread"] == 0.01);
  CHECK(json["shape"] == "with \"quotes\"\nand a break");
  CHECK(json["provenance"]["date"] == "2026-11-29");
}

TEST_CASE("what the device did not tell is null, never a number") {
  Row row = some_row();
  row.copy_rate.reset();
  const auto json = nlohmann::json::parse(line_of(row, kProvenance));
  CHECK(json["copy_share"].is_null());
  for (const char* key : {"sm_clock_Hz", "memory_clock_Hz", "temperature_C", "throttle_reasons"})
    CHECK(json["device"][key].is_null());
  row.state.temperature_c = 41;
  CHECK(nlohmann::json::parse(line_of(row, kProvenance))["device"]["temperature_C"] == 41);
  const Nvml nowhere("ffff:ff:1f.7");
  CHECK_FALSE(nowhere.state().sm_clock_hz.has_value());
}

TEST_CASE("lines are on disk as soon as they are written, and a file is never overwritten") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("scapesim-rows-" + std::to_string(::getpid()) + ".jsonl");
  std::filesystem::remove(path);
  {
    RowFile file(path);
    file.write("first\n");
    CHECK(content_of(path) == "first\n");
    file.write("second\n");
    CHECK(content_of(path) == "first\nsecond\n");
    CHECK_THROWS_AS(RowFile(path), InputError);
  }
  CHECK(content_of(path) == "first\nsecond\n");
  std::filesystem::remove(path);
  CHECK_THROWS_AS(RowFile("/no/such/folder/rows.jsonl"), InputError);
}
