// SPDX-License-Identifier: Apache-2.0
// The folder of a sweep: a journal while it runs, results.jsonl and results.csv when it is done.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/journal.hpp"

namespace scapesim::study {

inline constexpr std::string_view kJournalName = "journal";
inline constexpr std::string_view kJsonlName = "results.jsonl";
inline constexpr std::string_view kCsvName = "results.csv";
inline constexpr std::string_view kStudyName = "study.toml";

/// Part I of N, from 1: every N-th point, so that parts take about as long as each other.
struct Shard {
  std::uint64_t part = 1;
  std::uint64_t of = 1;
};
/// Reads "2/8". Throws InputError (key `option`).
Shard parse_shard(std::string_view text, const std::string& option);

/// A folder is made, or one that holds the same sweep gone on with.
enum class Begin { afresh, resumed };

/// The open folder of a sweep. The text of a point is its line of results.jsonl; an empty one says
/// that the filter leaves the point out.
class SweepFolder {
 public:
  /// Throws InputError: it holds a sweep already, or another one, or none; another process works in
  /// it; it cannot be written; its journal is damaged. `size`: points of the whole sweep.
  static SweepFolder open(const std::filesystem::path& folder, const Identity& identity,
                          Begin begin, Shard shard, std::uint64_t size);
  /// For a process beside the one that opened it: a journal of its own.
  static SweepFolder beside(const std::filesystem::path& folder, const Identity& identity,
                            Shard shard, int writer, std::uint64_t size);

  /// Points of the shard that no journal holds, ascending.
  std::vector<std::uint64_t> missing() const { return missing_; }
  std::uint64_t finished() const { return finished_; }

  void append(std::uint64_t point, std::string_view text) { journal_.append(point, text); }
  void sync() { journal_.sync(); }
  /// In a forked worker.
  void close() { journal_.close(); }

 private:
  explicit SweepFolder(JournalWriter journal) : journal_(std::move(journal)) {}

  JournalWriter journal_;
  std::vector<std::uint64_t> missing_;
  std::uint64_t finished_ = 0;
};

/// Every finished point of some folders' journals.
class FinishedPoints {
 public:
  explicit FinishedPoints(const std::vector<std::filesystem::path>& folders);
  /// Of the first folder, without its shard.
  const Identity& identity() const { return identity_; }
  std::uint64_t count() const { return entries_.size(); }
  std::uint64_t size() const { return size_; }  ///< points of the whole sweep
  bool has(std::uint64_t point) const { return entries_.contains(point); }
  /// Ascending; texts that are empty, too.
  void for_each(const std::function<void(std::uint64_t, const std::string&)>& use) const;

 private:
  struct Where {
    std::size_t journal;
    JournalEntry entry;
  };
  Identity identity_;
  std::uint64_t size_ = 0;
  std::vector<JournalReader> readers_;
  std::map<std::uint64_t, Where> entries_;
};

/// results.csv from lines of results.jsonl: the header from the first one (empty: there is none),
/// then a row for each.
struct CsvForm {
  std::function<std::string(const std::string& line)> header;
  std::function<std::string(const std::string& line)> row;
};

/// Writes the result files of a folder from finished points, in the order of their numbers.
void write_results(const std::filesystem::path& folder, const FinishedPoints& points,
                   const CsvForm& csv);

/// Makes a folder of the points of others: a journal in order, and results when none is missing.
/// Throws InputError when the folders are of different sweeps or points are missing, with the
/// folders to go on with.
void merge(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& target,
           const CsvForm& csv);

}  // namespace scapesim::study
