// SPDX-License-Identifier: Apache-2.0
#include "sim/study/workers.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <map>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "sim/base/check.hpp"

using namespace scapesim;
using study::work_on;

namespace {

std::vector<std::uint64_t> numbers(std::size_t count) {
  std::vector<std::uint64_t> list(count);
  std::iota(list.begin(), list.end(), 100);
  return list;
}

bool no_child_is_left() { return ::waitpid(-1, nullptr, WNOHANG) == -1; }

}  // namespace

TEST_CASE("every item is worked on once, whatever the number of processes") {
  for (const int jobs : {1, 2, 7, 1000}) {
    std::map<std::uint64_t, std::string> taken;
    const bool all = work_on(
        numbers(50), [](std::uint64_t item) { return std::string(item, 'x'); },
        [&](std::uint64_t item, std::string answer) {
          CHECK(taken.emplace(item, std::move(answer)).second);
        },
        {.jobs = jobs});
    CHECK(all);
    REQUIRE(taken.size() == 50);
    for (const auto& [item, answer] : taken) CHECK(answer.size() == item);
    CHECK(no_child_is_left());
  }
}

TEST_CASE("answers larger than a pipe holds arrive whole") {
  const std::string large(1'000'003, 'y');
  std::size_t bytes = 0;
  work_on(
      numbers(5), [&](std::uint64_t) { return large; },
      [&](std::uint64_t, const std::string& answer) { bytes += answer == large ? 1 : 0; },
      {.jobs = 2});
  CHECK(bytes == 5);
}

TEST_CASE("no items are no work") {
  CHECK(work_on(
      {}, [](std::uint64_t) { return ""; }, [](std::uint64_t, const std::string&) {}, {.jobs = 4}));
}

TEST_CASE("told to stop, it takes what was begun and leaves the rest") {
  std::size_t taken = 0;
  const bool all = work_on(
      numbers(1000),
      [](std::uint64_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return "";
      },
      [&](std::uint64_t, const std::string&) { ++taken; },
      {.jobs = 2, .stop = [&] { return taken >= 5; }});
  CHECK_FALSE(all);
  CHECK(taken >= 5);
  CHECK(taken < 1000);
  CHECK(no_child_is_left());
}

TEST_CASE("what work throws ends the call, and no process is left") {
  const auto work = [](std::uint64_t item) -> std::string {
    if (item == 105) throw std::runtime_error("no answer for 105");
    return "";
  };
  CHECK_THROWS_WITH(
      work_on(numbers(20), work, [](std::uint64_t, const std::string&) {}, {.jobs = 3}),
      "no answer for 105");
  CHECK(no_child_is_left());
}

TEST_CASE("what take throws ends the call, and no process is left") {
  CHECK_THROWS_WITH(
      work_on(
          numbers(20), [](std::uint64_t) { return ""; },
          [](std::uint64_t, const std::string&) { throw std::runtime_error("disk full"); },
          {.jobs = 3}),
      "disk full");
  CHECK(no_child_is_left());
}

TEST_CASE("a worker that dies is told with its item") {
  const auto work = [](std::uint64_t item) -> std::string {
    if (item == 107) std::raise(SIGKILL);
    return "";
  };
  try {
    work_on(numbers(20), work, [](std::uint64_t, const std::string&) {}, {.jobs = 2});
    FAIL("accepted");
  } catch (const study::WorkerDied& death) {
    CHECK(std::string(death.what()) == "a worker ended by signal 9 (Killed) at item 107");
  }
  CHECK(no_child_is_left());
}
