// SPDX-License-Identifier: Apache-2.0
// Ranks that meet by files: all get rank 0's text, whoever comes first; stale files do no harm; who
// is missing is named; nothing is left.
#include "kernels/step/rendezvous.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace scapesim::step;
using namespace std::chrono_literals;

namespace {

/// A folder of its own, gone with the test.
struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("scapesim-rendezvous-" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path file() const { return path / "id"; }
  bool empty() const { return std::filesystem::is_empty(path); }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
  }
};

const std::string kText("an id\0with\nany\xff byte", 21);

std::vector<std::string> meet(const Folder& folder, int ranks, std::vector<int> order) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (const int rank : order) {
    threads.emplace_back([&, rank] {
      texts[static_cast<std::size_t>(rank)] =
          agreed_text({folder.file(), rank, ranks, 20'000ms}, rank == 0 ? kText : "");
    });
    std::this_thread::sleep_for(30ms);
  }
  for (std::thread& thread : threads) thread.join();
  return texts;
}

}  // namespace

TEST_CASE("all ranks get rank 0's text, whoever comes first, and no file is left") {
  for (const auto& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
    const Folder folder;
    CHECK(meet(folder, 3, order) == std::vector<std::string>(3, kText));
    CHECK(folder.empty());
  }
}

TEST_CASE("files of an earlier run do no harm") {
  const Folder folder;
  folder.put("id", "0123456789abcdef\ntext\nan old id");
  folder.put("id.1", "0123456789abcdef");
  CHECK(meet(folder, 3, {2, 0, 1}) == std::vector<std::string>(3, kText));
  CHECK(folder.empty());
}

TEST_CASE("ranks that do not come are named") {
  const Folder folder;
  CHECK_THROWS_WITH(agreed_text({folder.file(), 0, 3, 100ms}, kText),
                    Catch::Matchers::Contains("rank 1, 2 did not come"));
  CHECK_THROWS_WITH(agreed_text({folder.file(), 2, 3, 100ms}, ""),
                    Catch::Matchers::Contains("rank 0 did not answer rank 2"));
  CHECK(folder.empty());
}

TEST_CASE("one rank alone needs no file") {
  CHECK(agreed_text({"/no/such/folder/id", 0, 1, 1ms}, kText) == kText);
}
