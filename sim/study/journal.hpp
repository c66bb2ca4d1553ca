// SPDX-License-Identifier: Apache-2.0
// What a study has finished, one checked line per point, appended as it comes: what is in it is
// done, whatever ends the program. A line is `checksum point text`; the first one says of what.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"

namespace scapesim::study {

/// What a study is, by name: {"axes", "..."}, {"filter", "..."}. Points of another are no answer.
using Identity = std::vector<std::pair<std::string, std::string>>;

/// Where the text of a point stands in its journal.
struct JournalEntry {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// A journal read whole. A last line that is cut off, as a kill leaves it, does not count; damage
/// before it is an InputError that says which line.
struct Journal {
  std::filesystem::path path;
  Identity identity;
  std::map<std::uint64_t, JournalEntry> entries;
  std::uint64_t sound_length = 0;  ///< bytes up to the end of the last whole line
};
Journal read_journal(const std::filesystem::path& path);

/// Adds what differs between two identities, placed at the journal.
void add_differences(const Journal& journal, const Identity& now, Problems& problems);

/// An open journal; one process at a time (flock), else InputError.
class JournalWriter {
 public:
  /// Makes a new one; there must be none.
  static JournalWriter create(const std::filesystem::path& path, const Identity& identity);
  /// Goes on behind the last whole line. To be opened before it is read, so that nobody writes.
  static JournalWriter reopen(const std::filesystem::path& path);
  ~JournalWriter();
  JournalWriter(JournalWriter&& other) noexcept;
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  /// Cuts off what follows the last whole line.
  void cut(std::uint64_t sound_length);
  /// Appends a point; the text is one line. Throws InputError when it cannot be written (disk
  /// full); what was written before stays sound.
  void append(std::uint64_t point, std::string_view text);
  /// In a forked worker: gives up the file and its lock, which stays the caller's.
  void close();
  /// Makes sure that the disk has it, not only the system.
  void sync();

 private:
  JournalWriter(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  void lock();
  void write_line(const std::string& line);

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t length_ = 0;
};

/// Reads single entries of journals again.
class JournalReader {
 public:
  explicit JournalReader(const std::filesystem::path& path);
  ~JournalReader();
  JournalReader(JournalReader&& other) noexcept : path_(other.path_), fd_(other.fd_) {
    other.fd_ = -1;
  }
  JournalReader(const JournalReader&) = delete;
  JournalReader& operator=(const JournalReader&) = delete;
  std::string text(const JournalEntry& entry) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace scapesim::study
