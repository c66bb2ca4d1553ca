// SPDX-License-Identifier: Apache-2.0
// nccl-tests' text output. Columns are found by the words of the header, so options -C, -S and -I,
// old versions and blank cells are one case. Ranks come from the rank lines above the rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <set>

#include "calib/import.hpp"
#include "calib/import_nccl.hpp"
#include "calib/import_text.hpp"
#include "sim/result/metrics.hpp"

namespace scapesim::calib {

namespace {

using graph::CollectiveKind;
using Words = std::vector<std::string_view>;

/// Words of the header line: those of the row's head, those of one result, how often it occurs.
struct Columns {
  std::vector<std::string> head;
  std::vector<std::string> result;
  std::size_t results = 0;
  bool stamped = false;  ///< a time stamp of two words ends the row
};

struct Rank {
  std::string host;
  int group = 0;
};
using World = std::map<int, Rank>;

struct Reader {
  std::string file;
  Observations out{};
  Columns columns{};
  World building{};  ///< rank lines since the last "# nThread" line
  World world{};     ///< the last complete one
  std::int64_t per_process = 1;
  NcclTest test{};
  std::string network{};
  std::set<std::string> hosts{};
  std::map<std::string, int> skipped{};  ///< rows by test that the simulator has no collective for
  BandwidthCheck check{};
};

bool is_header(const Words& words) {
  const auto has = [&](std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  return words.size() > 5 && words[0] == "#" && words[1] == "size" && has("count") && has("type") &&
         (has("time") || has("cputime")) && has("algbw") && has("busbw");
}

Columns columns_of(const Words& words) {
  const auto starts_result = [](std::string_view word) {
    return word == "time" || word == "cputime";
  };
  Columns columns;
  for (const std::string_view word : Words(words.begin() + 1, words.end())) {
    if (starts_result(word)) ++columns.results;
    if (word == "timestamp")
      columns.stamped = true;
    else if (columns.results == 0)
      columns.head.emplace_back(word);
    else if (columns.results == 1)
      columns.result.emplace_back(word);
  }
  return columns;
}

void read_thread_line(Reader& in, std::string_view line) {
  in.building.clear();
  const auto field = [&](std::string_view label) {
    return count_of(word_after(line, label).value_or("")).value_or(1);
  };
  in.per_process = std::int64_t{field("nThread ")} * field("nGpus ");
}

/// `#  Rank  0 Group  0 Pid 1 on HOST device  0 [bus] NAME`; old versions have no group.
void read_rank_line(Reader& in, std::string_view line) {
  const std::optional<double> rank = number_of(word_after(line, "Rank ").value_or(""));
  const std::optional<std::string_view> host = word_after(line, " on ");
  if (!rank || *rank < 0 || *rank > 1e7 || !host) return;
  const double group = number_of(word_after(line, "Group ").value_or("")).value_or(0);
  in.building[static_cast<int>(*rank)] = {std::string(*host),
                                          group > 0 && group < 1e7 ? static_cast<int>(group) : 0};
  in.hosts.insert(std::string(*host));
  if (const std::size_t bus = line.find("] "); bus != line.npos)
    add_gpu_name(line.substr(bus + 2), in.out.machine);
}

/// Makes the rank lines so far the world of the rows to come, when they are all there.
void settle_world(Reader& in) {
  if (in.building.empty()) return;
  const int count = static_cast<int>(in.building.size());
  const bool gapless = in.building.rbegin()->first == count - 1;
  if (gapless && count % in.per_process == 0) in.world = in.building;
}

/// Ranks of one communicator; NCCL_TESTS_SPLIT makes several groups of equal size.
World communicator(const World& world) {
  World members;
  for (const auto& [rank, where] : world)
    if (where.group == world.begin()->second.group) members.emplace(rank, where);
  return members;
}

/// None when a cell is neither a number nor N/A.
std::optional<NcclResult> result_of(const Columns& columns, const Words& cells) {
  NcclResult result;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& name = columns.result[i];
    const std::optional<double> value = number_of(cells[i]);
    if (!value && cells[i] != "N/A") return std::nullopt;
    if (name == "time" || name == "cputime") {
      result.time_us = positive_of(cells[i]);
      result.time_error = half_unit(cells[i]);
      result.cpu_time = name == "cputime";
    } else if (name == "algbw") {
      result.algbw_GBps = positive_of(cells[i]);
      result.algbw_error = half_unit(cells[i]);
    } else if (name == "busbw") {
      result.busbw_GBps = value;
      result.busbw_error = half_unit(cells[i]);
    } else if (name == "#wrong") {
      result.wrong = value && *value > 0;
    }
  }
  return result;
}

struct Row {
  Bytes size;
  std::string datatype, redop;
  std::optional<double> root;
  std::optional<NcclResult> out_of_place, in_place;
};

/// The head's cells by name; one cell may be blank (redop or root of tests that have none).
bool read_head(const Columns& columns, const Words& cells, Row& row) {
  std::size_t at = 0;
  const bool one_blank = cells.size() + 1 == columns.head.size();
  bool skipped = !one_blank;
  for (const std::string& name : columns.head) {
    const bool blank =
        !skipped && (at == cells.size() || (name == "redop" && number_of(cells[at]).has_value()));
    if (blank) {
      skipped = true;
      continue;
    }
    if (at == cells.size()) return false;
    const std::string_view cell = cells[at++];
    if (name == "size") row.size = Bytes(positive_of(cell).value_or(0));
    if (name == "count" && !number_of(cell)) return false;
    if (name == "type") row.datatype = lower_case(cell);
    if (name == "redop" && cell != "none") row.redop = cell;
    if (name == "root") row.root = number_of(cell);
  }
  return at == cells.size() && row.size > Bytes(0);
}

/// Replayed traces have no out-of-place result: 32 blanks stand in its place.
constexpr std::ptrdiff_t kOneResult = 24;

std::ptrdiff_t blanks_before(const Words& words, std::size_t i) {
  return words[i].data() - (words[i - 1].data() + words[i - 1].size());
}

std::optional<Row> row_of(const Columns& columns, Words words) {
  if (columns.results == 0) return std::nullopt;
  if (columns.stamped && words.size() > 2 && words.back().find(':') != std::string_view::npos)
    words.resize(words.size() - 2);
  const std::size_t width = columns.result.size();
  const bool only_in_place = columns.results == 2 && words.size() == columns.head.size() + width &&
                             blanks_before(words, columns.head.size()) > kOneResult;
  const std::size_t results = only_in_place ? 1 : columns.results;
  if (words.size() < results * width) return std::nullopt;
  const auto first = words.end() - static_cast<std::ptrdiff_t>(results * width);
  const auto last = words.end() - static_cast<std::ptrdiff_t>(width);
  Row row;
  if (!read_head(columns, Words(words.begin(), first), row)) return std::nullopt;
  if (!only_in_place) {
    row.out_of_place = result_of(columns, Words(first, first + static_cast<std::ptrdiff_t>(width)));
    if (!row.out_of_place) return std::nullopt;
  }
  if (columns.results == 2) {
    row.in_place = result_of(columns, Words(last, words.end()));
    if (!row.in_place) return std::nullopt;
  }
  return row;
}

/// Which collective a row of an unnamed test is, when redop, root and bandwidths tell.
std::optional<CollectiveKind> kind_told_by(const Row& row, int ranks) {
  const NcclResult* result = row.out_of_place ? &*row.out_of_place : nullptr;
  if (result == nullptr || !result->algbw_GBps || !result->busbw_GBps) return std::nullopt;
  if (result->algbw_error > 0.01 * *result->algbw_GBps) return std::nullopt;
  const double factor = *result->busbw_GBps / *result->algbw_GBps;
  const auto is = [&](CollectiveKind kind) {
    constexpr double kRounding = 0.03;  // two numbers within 1 % each
    return std::abs(factor / result::busbw_factor(kind, ranks) - 1) < kRounding;
  };
  if (row.root && *row.root >= 0)
    return row.redop.empty() ? std::optional(CollectiveKind::broadcast) : std::nullopt;
  if (row.redop.empty()) return std::nullopt;  // all-gather, all-to-all and sendrecv look alike
  const bool all_reduce = is(CollectiveKind::all_reduce);
  const bool reduce_scatter = is(CollectiveKind::reduce_scatter);
  if (all_reduce == reduce_scatter) return std::nullopt;
  return all_reduce ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
}

std::optional<Seconds> usable_time(const std::optional<NcclResult>& result, Bytes size) {
  return result && !result->wrong ? time_of(*result, size) : std::nullopt;
}

void read_row(Reader& in, const TextLine& line, const Words& words) {
  const std::optional<Row> row = row_of(in.columns, words);
  settle_world(in);
  const World members = in.world.empty() ? World() : communicator(in.world);
  const int ranks = static_cast<int>(members.size());
  const bool named = !in.test.name.empty();
  if (row && named && !in.test.kind) {
    ++in.skipped[in.test.name];
    return;
  }
  if (row && ranks == 1)
    return add_unparsed(line.number, line.text, Looks::like_something_else, in.out);
  if (!row || ranks == 0) return add_unparsed(line.number, line.text, Looks::like_data, in.out);
  const std::optional<CollectiveKind> kind = named ? in.test.kind : kind_told_by(*row, ranks);
  const std::optional<Seconds> out_of_place = usable_time(row->out_of_place, row->size);
  const std::optional<Seconds> in_place = usable_time(row->in_place, row->size);
  if (!kind || (!out_of_place && !in_place))
    return add_unparsed(line.number, line.text, Looks::like_data, in.out);

  std::set<std::string> hosts;
  for (const auto& [rank, where] : members) hosts.insert(where.host);
  const int nodes = static_cast<int>(hosts.size());
  const Place place{in.file, line.number, 0};
  for (const auto& result : {row->out_of_place, row->in_place})
    if (result) in.check.add(agrees(*result, row->size, *kind, ranks), place);
  in.out.collectives.push_back(
      {.kind = *kind,
       .size = row->size,
       .ranks = ranks,
       .nodes = nodes,
       .ranks_per_node = ranks % nodes == 0 ? std::optional(ranks / nodes) : std::nullopt,
       .time = out_of_place ? *out_of_place : *in_place,
       .in_place = in_place,
       .datatype = row->datatype,
       .transport = nodes > 1 ? in.network : std::string(),
       .place = place});
}

void read_comment(Reader& in, const TextLine& line, const Words& words) {
  if (is_header(words)) {
    in.columns = columns_of(words);
  } else if (line.text.find("nThread ") != line.text.npos) {
    read_thread_line(in, line.text);
  } else if (line.text.find(" Rank ") != line.text.npos) {
    read_rank_line(in, line.text);
  } else if (const auto version = word_after(line.text, "nccl-tests version ")) {
    in.out.provenance["nccl-tests"] = *version;
    if (const auto nccl = word_after(line.text, "nccl-library=")) in.out.provenance["nccl"] = *nccl;
  }
}

/// Lines of NCCL_DEBUG=INFO and of the shell that started the test.
void read_other(Reader& in, const TextLine& line) {
  constexpr std::string_view kForced = " set by environment to ";
  constexpr std::string_view kNetwork = "NCCL INFO Using network ";
  if (const std::size_t network = line.text.find(kNetwork); network != line.text.npos) {
    in.network = lower_case(line.text.substr(network + kNetwork.size()));
  } else if (const std::size_t forced = line.text.find(kForced); forced != line.text.npos) {
    const Words before = words_of(line.text.substr(0, forced));
    std::string_view value = word_after(line.text, kForced).value_or("");
    if (value.ends_with('.')) value.remove_suffix(1);
    if (!before.empty() && may_keep(before.back()))
      in.out.environment.emplace(before.back(), value);
  } else if (nccl_test_in(line.text).name.empty()) {
    add_unparsed(line.number, line.text, Looks::like_something_else, in.out);
  }
}

void read_line(Reader& in, const TextLine& line) {
  const Words words = words_of(line.text);
  if (const NcclTest named = nccl_test_in(line.text); !named.name.empty()) in.test = named;
  keep_environment(line.text, in.out);
  if (line.text[line.text.find_first_not_of(" \t")] == '#')
    read_comment(in, line, words);
  else if (in.columns.results > 0 && words.size() > 2 && number_of(words[0]) && number_of(words[1]))
    read_row(in, line, words);
  else
    read_other(in, line);
}

}  // namespace

bool recognises_nccl_text(std::string_view text) {
  if (text.starts_with('{')) return false;
  for (std::size_t at = text.find('#'); at != text.npos; at = text.find('#', at + 1)) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with("# nThread ") && line.find(" nGpus ") != line.npos) return true;
    if (is_header(words_of(line))) return true;
  }
  return false;
}

Observations read_nccl_text(std::string_view text, const std::string& file) {
  const std::string plain = without_colours(text);
  Reader in{.file = file};
  in.test = nccl_test_of_file(file);
  for (const TextLine& line : lines_of(plain)) read_line(in, line);
  settle_world(in);
  for (const auto& [name, rows] : in.skipped)
    warn(in.out, {.file = file}, fmt::format("{} rows of {}_perf are not used", rows, name),
         "the simulator has no such collective");
  if (!in.hosts.empty()) in.out.machine.hosts = static_cast<int>(in.hosts.size());
  if (!in.world.empty()) in.out.machine.gpus = static_cast<int>(in.world.size());
  in.check.report(in.out);
  apply_forced_choices(in.out);
  if (in.world.size() == 1)
    warn(in.out, {.file = file}, "one rank: nothing is sent, so its rows are not used");
  require_samples(
      in.out, file, "row of a collective over two or more ranks",
      "needed are the rank lines (\"#  Rank  0 ...\"), the header, rows, and a name such "
      "as all_reduce_perf in the log or all_reduce.log as the file's");
  return std::move(in.out);
}

}  // namespace scapesim::calib
