// SPDX-License-Identifier: Apache-2.0
// POSIX appends with one write per line; a write that fails half-way is taken back.
#include "sim/study/journal.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "sim/base/check.hpp"
#include "sim/base/file.hpp"

namespace scapesim::study {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchema = "scapesim.journal/1";
constexpr std::size_t kLargest = std::size_t{16} << 30U;
constexpr std::size_t kChecksum = 16;  // hex digits

[[noreturn]] void fail(const fs::path& path, std::string what, std::string hint = {}) {
  throw InputError(Problem{{.file = path.string()}, {}, std::move(what), std::move(hint)});
}

std::string reason() { return std::generic_category().message(errno); }

std::string line_of(std::string_view subject, std::string_view text) {
  const std::string content = fmt::format("{} {}", subject, text);
  return fmt::format("{} {}\n", content_hash(content), content);
}

/// The two parts of a sound line.
struct Line {
  std::string_view subject;
  std::string_view text;
};
std::optional<Line> sound_line(std::string_view line) {
  if (line.size() < kChecksum + 2 || line[kChecksum] != ' ') return std::nullopt;
  const std::string_view content = line.substr(kChecksum + 1);
  if (content_hash(content) != line.substr(0, kChecksum)) return std::nullopt;
  const std::size_t space = content.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return Line{content.substr(0, space), content.substr(space + 1)};
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Identity identity_of(std::string_view text, const fs::path& path) {
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!json.is_object()) fail(path, "its first line is no description of a study");
  Identity identity;
  for (const auto& [name, value] : json.items())
    if (value.is_string()) identity.emplace_back(name, value.get<std::string>());
  return identity;
}

class Reading {
 public:
  Reading(const fs::path& path, std::string_view bytes) : bytes_(bytes) { journal_.path = path; }

  Journal all() {
    std::optional<int> damaged;
    for (int number = 1; offset_ < bytes_.size(); ++number) {
      const std::size_t end = bytes_.find('\n', offset_);
      if (end == std::string_view::npos) break;
      const bool sound = add(number, bytes_.substr(offset_, end - offset_));
      if (!sound && number == 1) refuse_first_line();
      if (!sound && !damaged) damaged = number;
      if (sound && damaged) refuse_line(*damaged);
      offset_ = end + 1;
      if (sound) journal_.sound_length = offset_;
    }
    if (journal_.sound_length == 0) refuse_first_line();
    return std::move(journal_);
  }

 private:
  bool add(int number, std::string_view text) {
    const std::optional<Line> line = sound_line(text);
    if (!line) return false;
    if (number == 1) {
      if (line->subject != kSchema) return false;
      journal_.identity = identity_of(line->text, journal_.path);
      return true;
    }
    const std::optional<std::uint64_t> point = number_of(line->subject);
    if (!point) return false;
    const std::uint64_t begin = static_cast<std::uint64_t>(line->text.data() - bytes_.data());
    journal_.entries[*point] = {begin, line->text.size()};
    return true;
  }

  [[noreturn]] void refuse_first_line() const {
    fail(journal_.path, "no journal of a study: its first line is damaged",
         "start over in another folder");
  }
  [[noreturn]] void refuse_line(int number) const {
    throw InputError(
        Problem{{.file = journal_.path.string(), .line = number, .column = 1},
                {},
                "damaged: its checksum does not fit, and sound lines follow",
                fmt::format("delete it (sed -i {}d {}) and resume: its point is computed again",
                            number, journal_.path.string())});
  }

  std::string_view bytes_;
  std::size_t offset_ = 0;
  Journal journal_;
};

}  // namespace

Journal read_journal(const fs::path& path) {
  const std::string bytes = read_file(path, "journal", kLargest);
  return Reading(path, bytes).all();
}

void add_differences(const Journal& journal, const Identity& now, Problems& problems) {
  const auto value = [](const Identity& identity, const std::string& name) {
    const auto same = [&](const auto& pair) { return pair.first == name; };
    const auto found = std::ranges::find_if(identity, same);
    return found == identity.end() ? std::string("none") : found->second;
  };
  for (const auto& [name, text] : now)
    if (const std::string before = value(journal.identity, name); before != text)
      problems.add({.file = journal.path.string()}, name,
                   fmt::format("now {}, in the journal {}", text, before),
                   "resume with what it was begun with, or take another folder");
}

void JournalWriter::lock() {
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK)
    fail(path_, "another process works in this folder", "wait for it, or take another folder");
  fail(path_, "cannot lock: " + reason());
}

JournalWriter JournalWriter::create(const fs::path& path, const Identity& identity) {
  constexpr mode_t kMode = 0666;  // less the user's umask
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
  if (fd < 0) fail(path, "cannot write: " + reason());
  JournalWriter writer(path, fd);
  writer.lock();
  // Whoever made an empty one was killed before the first line.
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail(path, "cannot read: " + reason());
  if (status.st_size > 0) fail(path, "is there already");
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, text] : identity) json[name] = text;
  try {
    writer.write_line(line_of(
        kSchema, json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
  } catch (const InputError&) {
    ::unlink(path.c_str());
    throw;
  }
  return writer;
}

JournalWriter JournalWriter::reopen(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot write: " + reason());
  JournalWriter writer(path, fd);
  writer.lock();
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail(path, "cannot read: " + reason());
  writer.length_ = static_cast<std::uint64_t>(status.st_size);
  return writer;
}

JournalWriter::~JournalWriter() { close(); }

void JournalWriter::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

JournalWriter::JournalWriter(JournalWriter&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), length_(other.length_) {}

void JournalWriter::cut(std::uint64_t sound_length) {
  if (sound_length >= length_) return;
  if (::ftruncate(fd_, static_cast<off_t>(sound_length)) != 0)
    fail(path_, "cannot write: " + reason());
  length_ = sound_length;
}

void JournalWriter::append(std::uint64_t point, std::string_view text) {
  SCAPESIM_CHECK(text.find('\n') == std::string_view::npos, "point {} has several lines", point);
  write_line(line_of(std::to_string(point), text));
}

void JournalWriter::write_line(const std::string& line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const std::string why = reason();
      // The half line that may stand there would only be cut off later.
      [[maybe_unused]] const int taken_back = ::ftruncate(fd_, static_cast<off_t>(length_));
      fail(path_, "cannot write: " + why,
           "what is finished is kept; make room, then go on with --resume");
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  length_ += line.size();
}

void JournalWriter::sync() {
  if (::fdatasync(fd_) != 0) fail(path_, "cannot write: " + reason());
}

JournalReader::JournalReader(const fs::path& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) fail(path_, "cannot read: " + reason());
}

JournalReader::~JournalReader() {
  if (fd_ >= 0) ::close(fd_);
}

std::string JournalReader::text(const JournalEntry& entry) const {
  std::string text(entry.length, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::pread(fd_, text.data() + done, text.size() - done,
                                static_cast<off_t>(entry.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, "cannot read: " + reason());
    if (got == 0) fail(path_, "cannot read: it became shorter");
    done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace scapesim::study
