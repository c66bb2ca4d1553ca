// SPDX-License-Identifier: Apache-2.0
// Journals against cuts at every byte and damage in every line.
#include "sim/study/journal.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "sim/base/file.hpp"

using namespace scapesim;
using namespace scapesim::study;

namespace {

namespace fs = std::filesystem;

const Identity kIdentity = {{"axes", "a.x=1,2"}, {"filter", "tp == \"x\""}};

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "scapesim-journal-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) FAIL("no temporary folder");
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path journal() const { return path_ / "journal"; }
  void put(const std::string& bytes) const {
    std::ofstream(journal(), std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  fs::path path_;
};

void write_three(const fs::path& path) {
  JournalWriter writer = JournalWriter::create(path, kIdentity);
  writer.append(7, "seven");
  writer.append(3, "");
  writer.append(5, "five of them");
  writer.sync();
}

std::string problem(const fs::path& path) {
  try {
    read_journal(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a journal gives back what was appended, also a text that is empty") {
  const Folder folder;
  write_three(folder.journal());
  const Journal journal = read_journal(folder.journal());
  CHECK(journal.identity == kIdentity);
  REQUIRE(journal.entries.size() == 3);
  const JournalReader reader(folder.journal());
  CHECK(reader.text(journal.entries.at(7)) == "seven");
  CHECK(reader.text(journal.entries.at(3)).empty());
  CHECK(reader.text(journal.entries.at(5)) == "five of them");
  CHECK(journal.sound_length == fs::file_size(folder.journal()));
}

TEST_CASE("cut at any byte, a journal holds the lines that are whole and goes on behind them") {
  const Folder folder;
  write_three(folder.journal());
  const std::string whole = read_file(folder.journal(), "test");
  const std::size_t first = whole.find('\n') + 1;
  for (std::size_t length = first; length <= whole.size(); ++length) {
    folder.put(whole.substr(0, length));
    const Journal cut = read_journal(folder.journal());
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<long>(length), '\n');
    REQUIRE(cut.entries.size() + 1 == static_cast<std::size_t>(lines));
    JournalWriter writer = JournalWriter::reopen(folder.journal());
    writer.cut(cut.sound_length);
    writer.append(9, "nine");
    const Journal longer = read_journal(folder.journal());
    REQUIRE(longer.entries.size() == cut.entries.size() + 1);
    REQUIRE(JournalReader(folder.journal()).text(longer.entries.at(9)) == "nine");
  }
}

TEST_CASE("damage before the last line is told with its line; deleting that line heals") {
  const Folder folder;
  write_three(folder.journal());
  const std::string whole = read_file(folder.journal(), "test");
  const std::size_t second = whole.find('\n') + 1;
  const std::size_t third = whole.find('\n', second) + 1;
  for (std::size_t i = second; i + 1 < third; ++i) {
    std::string damaged = whole;
    damaged[i] = damaged[i] == 'x' ? 'y' : 'x';
    folder.put(damaged);
    const std::string told = problem(folder.journal());
    REQUIRE(told.find("journal:2:1: damaged") != std::string::npos);
    REQUIRE(told.find("sed -i 2d") != std::string::npos);
  }
  folder.put(whole.substr(0, second) + whole.substr(third));
  CHECK(read_journal(folder.journal()).entries.size() == 2);
}

TEST_CASE("damage in the first line, and other files, are no journal") {
  const Folder folder;
  write_three(folder.journal());
  std::string whole = read_file(folder.journal(), "test");
  whole[20] = '#';
  folder.put(whole);
  CHECK(problem(folder.journal()).find("its first line is damaged") != std::string::npos);
  folder.put("");
  CHECK(problem(folder.journal()).find("its first line is damaged") != std::string::npos);
  folder.put("point,series\n1,2\n");
  CHECK(problem(folder.journal()).find("its first line is damaged") != std::string::npos);
}

TEST_CASE("one writer at a time, and none over another's journal") {
  const Folder folder;
  write_three(folder.journal());
  CHECK_THROWS_AS(JournalWriter::create(folder.journal(), kIdentity), InputError);
  {
    const JournalWriter first = JournalWriter::reopen(folder.journal());
    CHECK_THROWS_WITH(JournalWriter::reopen(folder.journal()),
                      Catch::Matchers::Contains("another process works in this folder"));
  }
  CHECK_NOTHROW(JournalWriter::reopen(folder.journal()));
}

TEST_CASE("another study's points are told by what differs") {
  const Folder folder;
  write_three(folder.journal());
  const Journal journal = read_journal(folder.journal());
  Problems same, other;
  add_differences(journal, kIdentity, same);
  CHECK(same.empty());
  add_differences(journal, {{"axes", "a.x=1,3"}, {"filter", "tp == \"x\""}, {"zip", "yes"}}, other);
  REQUIRE(other.list().size() == 2);
  CHECK(other.list()[0].what == "now a.x=1,3, in the journal a.x=1,2");
  CHECK(other.list()[1].key == "zip");
}
