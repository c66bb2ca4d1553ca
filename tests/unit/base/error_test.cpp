// SPDX-License-Identifier: Apache-2.0
// Text and order of problems, nearest words, invariants.
#include "sim/base/error.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "sim/base/check.hpp"

namespace scapesim {
namespace {

std::string text(Problem problem) { return InputError(std::move(problem)).what(); }

std::string raised(const Problems& problems) {
  try {
    problems.raise();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a problem reads file:line:column: key: what (hint)") {
  REQUIRE(text({{"a.toml", 3, 9}, "training.micro_batch", "must be positive", "write 8"}) ==
          "a.toml:3:9: training.micro_batch: must be positive (write 8)");
}

TEST_CASE("parts that are unknown are left out") {
  REQUIRE(text({{"a.toml", 3, 0}, "", "no such table", ""}) == "a.toml:3: no such table");
  REQUIRE(text({{"a.toml", 0, 7}, "", "empty", ""}) == "a.toml: empty");
  REQUIRE(text({{}, "--gpus", "must be positive", ""}) == "--gpus: must be positive");
  REQUIRE(text({{"", 4, 4}, "", "wrong", "right"}) == "wrong (right)");
}

TEST_CASE("a problem stays one line whatever the user wrote") {
  REQUIRE(text({{"a\nb", 0, 0}, "k\x1b", "w\r", "\x7f"}) == "a\\nb: k\\x1b: w\\x0d (\\x7f)");
}

TEST_CASE("problems are ordered by file as met, then line, then column; unknown places last") {
  Problems problems;
  problems.add({"z.toml", 0, 0}, "e", "no place");
  problems.add({"a.toml", 1, 1}, "f", "other file");
  problems.add({"z.toml", 9, 1}, "d", "later line");
  problems.add({"z.toml", 2, 0}, "c", "unknown column");
  problems.add({"z.toml", 2, 8}, "b", "second");
  problems.add({"z.toml", 2, 3}, "a", "first");
  problems.add({"z.toml", 2, 3}, "a", "first again");
  REQUIRE(raised(problems) ==
          "z.toml:2:3: a: first\n"
          "z.toml:2:3: a: first again\n"
          "z.toml:2:8: b: second\n"
          "z.toml:2: c: unknown column\n"
          "z.toml:9:1: d: later line\n"
          "z.toml: e: no place\n"
          "a.toml:1:1: f: other file");
}

TEST_CASE("no problems raise nothing") {
  const Problems none;
  REQUIRE(none.empty());
  REQUIRE_NOTHROW(none.raise());
}

TEST_CASE("the error keeps the problems as values") {
  Problems problems;
  problems.add({"a.toml", 1, 2}, "k", "w", "h");
  try {
    problems.raise();
    FAIL("did not throw");
  } catch (const InputError& error) {
    REQUIRE(error.problems().size() == 1);
    REQUIRE(error.problems()[0].key == "k");
    REQUIRE(error.problems()[0].hint == "h");
  }
}

constexpr std::string_view kWords[] = {"micro_batch", "global_batch", "sequence", "precision"};

TEST_CASE("a typing mistake gets the nearest word: swap, omission, addition, case") {
  for (const char* word :
       {"mirco_batch", "micro_bach", "microo_batch", "Micro_Batch", "microbatch"})
    REQUIRE(did_you_mean(word, kWords) == "did you mean \"micro_batch\"?");
}

TEST_CASE("a word is near up to a third of its length and not beyond") {
  constexpr std::string_view kOne[] = {"abcdef"};
  REQUIRE(nearest("abcdxy", kOne) == "abcdef");      // 2 of 6
  REQUIRE(nearest("abcxyz", kOne) == std::nullopt);  // 3 of 6
  REQUIRE(nearest("abdcfe", kOne) == "abcdef");      // two swaps of neighbours
}

TEST_CASE("a far word gets the list when it is short, nothing when it is long") {
  REQUIRE(did_you_mean("zzz", kWords) == "known: micro_batch, global_batch, sequence, precision");
  std::vector<std::string_view> many(13, "word_of_some_length");
  REQUIRE(did_you_mean("zzz", many).empty());
  many.pop_back();
  REQUIRE_FALSE(did_you_mean("zzz", many).empty());
  REQUIRE(did_you_mean("zzz", {}).empty());
}

TEST_CASE("a monstrous word costs no table of its size") {
  REQUIRE(nearest(std::string(1000000, 'x'), kWords) == std::nullopt);
}

TEST_CASE("a broken invariant says where, what and with which values") {
  const int chunk = -3;
  REQUIRE_NOTHROW([] { SCAPESIM_CHECK(1 + 1 == 2, "never"); }());
  REQUIRE_THROWS_WITH([&] { SCAPESIM_CHECK(chunk > 0, "chunk {}", chunk); }(),
                      Catch::Contains("error_test.cpp") && Catch::Contains("chunk > 0") &&
                          Catch::EndsWith("chunk -3"));
}

}  // namespace
}  // namespace scapesim
