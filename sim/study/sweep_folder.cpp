// SPDX-License-Identifier: Apache-2.0
// Journals in, result files out; nothing here knows what a point says.
#include "sim/study/sweep_folder.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "sim/base/file.hpp"

namespace scapesim::study {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShardName = "shard";
constexpr std::string_view kPointsName = "points";

[[noreturn]] void fail(const fs::path& path, std::string what, std::string hint = {}) {
  throw InputError(Problem{{.file = path.string()}, {}, std::move(what), std::move(hint)});
}

std::string text_of(Shard shard) { return fmt::format("{}/{}", shard.part, shard.of); }

std::string value_of(const Identity& identity, std::string_view name) {
  for (const auto& [key, text] : identity)
    if (key == name) return text;
  return {};
}

Identity with_shard(Identity identity, Shard shard, std::uint64_t size) {
  identity.emplace_back(kPointsName, std::to_string(size));
  identity.emplace_back(kShardName, text_of(shard));
  return identity;
}

/// "journal", and "journal.1" ... of processes beside it, in order of their names.
std::vector<fs::path> journals_in(const fs::path& folder) {
  std::vector<fs::path> list;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure)) {
    const std::string name = it->path().filename().string();
    if (name == kJournalName || name.starts_with(std::string(kJournalName) + "."))
      list.push_back(it->path());
  }
  std::ranges::sort(list);
  return list;
}

void make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) fail(folder, "cannot make the folder: " + failure.message());
  if (!fs::is_directory(folder, failure)) fail(folder, "is no folder");
}

/// A journal without a line was left by a process that was killed before its first.
bool is_begun(const fs::path& journal) {
  std::error_code failure;
  const std::uintmax_t size = fs::file_size(journal, failure);
  return !failure && size > 0;
}

void refuse_old_results(const fs::path& folder) {
  std::error_code ignored;
  if (std::ranges::any_of(journals_in(folder), is_begun))
    fail(folder, "holds a sweep already", "go on with it by --resume, or take another folder");
  for (const std::string_view name : {kJsonlName, kCsvName})
    if (fs::exists(folder / name, ignored))
      fail(folder / name, "is there already", "take another folder");
}

std::uint64_t count_of(const Identity& identity) {
  const std::string text = value_of(identity, kPointsName);
  std::uint64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

}  // namespace

Shard parse_shard(std::string_view text, const std::string& option) {
  Shard shard{0, 0};
  const auto number = [&](std::string_view word, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
  };
  const std::size_t slash = text.find('/');
  const bool read = slash != std::string_view::npos && number(text.substr(0, slash), shard.part) &&
                    number(text.substr(slash + 1), shard.of);
  constexpr std::uint64_t kMostShards = 1'000'000;
  if (!read || shard.part < 1 || shard.part > shard.of || shard.of > kMostShards)
    throw InputError(Problem{
        {}, option, fmt::format("\"{}\" is no part I of N", text), "such as 1/8, up to 8/8"});
  return shard;
}

SweepFolder SweepFolder::open(const fs::path& folder, const Identity& identity, Begin begin,
                              Shard shard, std::uint64_t size) {
  const Identity whole = with_shard(identity, shard, size);
  const fs::path main = folder / kJournalName;
  const auto on_shard = [&](std::uint64_t point) { return point % shard.of == shard.part - 1; };
  if (begin == Begin::afresh) {
    make_folder(folder);
    refuse_old_results(folder);
    SweepFolder result(JournalWriter::create(main, whole));
    for (std::uint64_t point = 0; point < size; ++point)
      if (on_shard(point)) result.missing_.push_back(point);
    return result;
  }
  if (!is_begun(main)) fail(folder, "holds no sweep to resume", "leave --resume out to begin one");
  SweepFolder result(JournalWriter::reopen(main));
  std::vector<bool> done(size, false);
  Problems problems;
  for (const fs::path& path : journals_in(folder)) {
    if (path != main) JournalWriter::reopen(path);  // somebody else may hold it
    const Journal journal = read_journal(path);
    add_differences(journal, whole, problems);
    problems.raise();
    if (path == main) result.journal_.cut(journal.sound_length);
    for (const auto& [point, entry] : journal.entries)
      if (point < size) done[point] = true;
  }
  for (std::uint64_t point = 0; point < size; ++point) {
    if (!on_shard(point)) continue;
    if (done[point])
      ++result.finished_;
    else
      result.missing_.push_back(point);
  }
  return result;
}

SweepFolder SweepFolder::beside(const fs::path& folder, const Identity& identity, Shard shard,
                                int writer, std::uint64_t size) {
  const fs::path path = folder / fmt::format("{}.{}", kJournalName, writer);
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return SweepFolder(JournalWriter::create(path, with_shard(identity, shard, size)));
  SweepFolder result(JournalWriter::reopen(path));
  result.journal_.cut(read_journal(path).sound_length);
  return result;
}

FinishedPoints::FinishedPoints(const std::vector<fs::path>& folders) {
  Problems problems;
  for (const fs::path& folder : folders) {
    const std::vector<fs::path> journals = journals_in(folder);
    if (journals.empty()) problems.add({.file = folder.string()}, {}, "holds no sweep");
    for (const fs::path& path : journals) {
      const Journal journal = read_journal(path);
      Identity identity = journal.identity;
      std::erase_if(identity, [](const auto& pair) { return pair.first == kShardName; });
      if (identity_.empty()) {
        identity_ = identity;
        size_ = count_of(identity);
      }
      add_differences(journal, identity_, problems);
      readers_.emplace_back(path);
      for (const auto& [point, entry] : journal.entries)
        entries_.try_emplace(point, Where{readers_.size() - 1, entry});
    }
  }
  problems.raise();
  std::erase_if(identity_, [](const auto& pair) { return pair.first == kPointsName; });
}

void FinishedPoints::for_each(
    const std::function<void(std::uint64_t, const std::string&)>& use) const {
  for (const auto& [point, where] : entries_) use(point, readers_[where.journal].text(where.entry));
}

void write_results(const fs::path& folder, const FinishedPoints& points, const CsvForm& csv) {
  FileWriter lines(folder / kJsonlName);
  FileWriter table(folder / kCsvName);
  bool headed = false;
  const auto head = [&](const std::string& line) {
    if (!std::exchange(headed, true)) table.write(csv.header(line) + "\n");
  };
  points.for_each([&](std::uint64_t, const std::string& line) {
    if (line.empty()) return;
    head(line);
    lines.write(line + "\n");
    table.write(csv.row(line) + "\n");
  });
  head("");
  lines.commit();
  table.commit();
}

void merge(const std::vector<fs::path>& folders, const fs::path& target, const CsvForm& csv) {
  const FinishedPoints points(folders);
  if (points.count() < points.size()) {
    std::uint64_t first = 0;
    while (points.has(first)) ++first;
    fail(folders.front(),
         fmt::format("{} of {} points are missing, the first is point {}",
                     points.size() - points.count(), points.size(), first),
         "give every part's folder; finish one that was stopped with --resume");
  }
  SweepFolder merged =
      SweepFolder::open(target, points.identity(), Begin::afresh, Shard{}, points.size());
  points.for_each(
      [&](std::uint64_t point, const std::string& text) { merged.append(point, text); });
  merged.sync();
  write_results(target, points, csv);
}

}  // namespace scapesim::study
