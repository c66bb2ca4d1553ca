// SPDX-License-Identifier: Apache-2.0
// Every file is one format's, and no damage to it is worse than an error.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "support.hpp"

using namespace scapesim;
using namespace scapesim::calib;
using Catch::Contains;

namespace {

struct Input {
  std::string name;
  std::string bytes;
};

/// All fixtures, databases built.
std::vector<Input> inputs() {
  std::vector<Input> list;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (extension == ".sql")
      list.push_back({name, database(name)});
    else if (extension != ".cpp" && extension != ".hpp")
      list.push_back({name, fixture(name)});
  }
  std::ranges::sort(list, {}, &Input::name);
  return list;
}

bool sane(const Observations& found) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  const auto collective = [&](const CollectiveSample& s) {
    return positive(s.size.si()) && positive(s.time.si()) && s.ranks >= 2;
  };
  const auto copy = [&](const CopySample& s) { return positive(s.rate.si()); };
  const auto step = [&](const StepSample& s) {
    return (s.step_time && positive(s.step_time->si())) ||
           (s.token_rate_per_gpu && positive(s.token_rate_per_gpu->si()));
  };
  return std::ranges::all_of(found.collectives, collective) &&
         std::ranges::all_of(found.copies, copy) && std::ranges::all_of(found.steps, step);
}

/// Imports; anything but observations or an InputError fails the test.
void survives(std::string_view bytes, const std::string& what) {
  try {
    const Observations found = import_bytes(bytes, "input");
    if (!sane(found) || found.empty()) FAIL(what + ": samples that cannot be");
  } catch (const InputError&) {
  } catch (const std::exception& error) {
    FAIL(what + ": " + error.what());
  }
}

}  // namespace

TEST_CASE("every fixture is recognised by exactly one importer, and every importer has one") {
  std::set<std::string_view> seen;
  for (const Input& input : inputs()) {
    CAPTURE(input.name);
    int count = 0;
    for (const Importer& importer : importers())
      if (importer.recognises(input.bytes)) {
        ++count;
        seen.insert(importer.name);
      }
    CHECK(count == 1);
  }
  CHECK(seen.size() == importers().size());
}

TEST_CASE("a file of no known format is refused with what was looked for") {
  for (const std::string text :
       {"", "\n", "{}", "[1, 2]", "hello world\n", "size count type time"}) {
    const std::string told = refusal(text, "notes.txt");
    CHECK_THAT(told, Contains("notes.txt") && Contains("no known format"));
    for (const Importer& importer : importers())
      CHECK_THAT(told, Contains(std::string(importer.looked_for)));
  }
}

TEST_CASE("a file that does not exist is an input error") {
  CHECK_THROWS_AS(import_file(kFolder / "no-such.log"), InputError);
}

TEST_CASE("a file with output of two tools carries a warning") {
  const Observations found =
      import_bytes(fixture("two-nodes.log") + fixture("megatron.log"), "job.out");
  CHECK(found.format == "nccl-tests");
  CHECK_THAT(warnings_of(found), Contains("there is megatron output in it too"));
}

TEST_CASE("a log without an end of its last line carries a warning") {
  std::string text = fixture("times.csv");
  text.pop_back();
  CHECK_THAT(warnings_of(import_bytes(text, "times.csv")), Contains("last line has no end"));
}

TEST_CASE("truncation at every byte gives observations or an input error") {
  for (const Input& input : inputs()) {
    // Databases are pages of 4096 bytes: around the ends of pages, and some bytes between.
    const bool is_database = input.name.ends_with(".sql");
    for (std::size_t size = 0; size < input.bytes.size(); ++size)
      if (!is_database || size % 4096 < 128 || size % 61 == 0)
        survives(std::string_view(input.bytes).substr(0, size),
                 input.name + " cut at " + std::to_string(size));
  }
}

TEST_CASE("truncation of a compressed trace at every byte gives an input error") {
  const std::string packed = gzip(fixture("step.kineto.json"));
  for (std::size_t size = 0; size < packed.size(); ++size)
    CHECK_FALSE(refusal(std::string_view(packed).substr(0, size)).empty());
}

TEST_CASE("a byte changed anywhere gives observations or an input error") {
  for (const Input& input : inputs())
    for (std::size_t at = 0; at < input.bytes.size(); at += 11)
      for (const char with : {'\0', '9', '-', '"', '\n', '\xff'}) {
        std::string bytes = input.bytes;
        bytes[at] = with;
        survives(bytes, input.name + " changed at " + std::to_string(at));
      }
}
