// SPDX-License-Identifier: Apache-2.0
#include "calib/sweeps.hpp"

#include <charconv>
#include <map>

#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"

namespace scapesim::calib {

namespace {

/// A rate that may be 0: not used.
double rate_of(const Csv& csv, const CsvCell& cell, const std::string& key, Problems& problems) {
  return cell.text == "0" ? 0 : positive_number(csv, cell, key, problems);
}

template <class E>
E word_of(const Csv& csv, const CsvCell& cell, const std::string& key, Problems& problems) {
  if (const auto value = find_named<E>(cell.text)) return *value;
  problems.add(place_of(csv, cell), key, "unknown word \"" + cell.text + "\"",
               did_you_mean(cell.text, all_names<E>()));
  return E{};
}

/// The sweep and a call of it without size and time.
std::pair<Sweep, TimedCall> sweep_of(const Csv& csv, const CsvRow& row, Problems& problems) {
  const auto& c = row.cells;
  TimedCall call;
  call.kind = word_of<graph::CollectiveKind>(csv, c[3], "kind", problems);
  call.layout = {.ranks = positive_integer(csv, c[4], "ranks", problems),
                 .nodes = positive_integer(csv, c[5], "nodes", problems),
                 .nics_per_node = positive_integer(csv, c[6], "nics_per_node", problems)};
  call.rates = {.node_link = BytesPerSecond(rate_of(csv, c[7], "node_link_Bps", problems)),
                .nic = BytesPerSecond(rate_of(csv, c[8], "nic_Bps", problems))};
  if (!c[9].text.empty())
    call.algorithm = word_of<graph::Algorithm>(csv, c[9], "algorithm", problems);
  if (c[10].text != "exact" && c[10].text != "partial")
    problems.add(place_of(csv, c[10]), "quality", "must be exact or partial");
  return {{.name = c[0].text,
           .gpu = c[1].text,
           .fabric = c[2].text,
           .exact = c[10].text == "exact",
           .source = c[11].text,
           .calls = {}},
          call};
}

}  // namespace

std::vector<Sweep> collective_sweeps(const std::filesystem::path& root) {
  constexpr std::string_view kSweepColumns[] = {
      "sweep",         "gpu",           "fabric",  "kind",      "ranks",   "nodes",
      "nics_per_node", "node_link_Bps", "nic_Bps", "algorithm", "quality", "source"};
  constexpr std::string_view kPointColumns[] = {"sweep", "size_B", "time_s"};
  const auto read = [&](const char* name, std::span<const std::string_view> columns) {
    const std::filesystem::path file = root / "calib" / "data" / name;
    return parse_csv(read_file(file, "collectives"), file.string(), columns);
  };
  const Csv tables = read("collectives-sweeps.csv", kSweepColumns);
  const Csv points = read("collectives-points.csv", kPointColumns);
  Problems problems;
  std::vector<Sweep> sweeps;
  std::map<std::string, std::pair<std::size_t, TimedCall>> by_name;
  for (const CsvRow& row : tables.rows) {
    auto [sweep, call] = sweep_of(tables, row, problems);
    if (!by_name.try_emplace(sweep.name, sweeps.size(), call).second)
      problems.add(place_of(tables, row.cells[0]), "sweep", "appears twice");
    sweeps.push_back(std::move(sweep));
  }
  for (const CsvRow& row : points.rows) {
    const auto found = by_name.find(row.cells[0].text);
    if (found == by_name.end()) {
      problems.add(place_of(points, row.cells[0]), "sweep",
                   "\"" + row.cells[0].text + "\" is not in collectives-sweeps.csv");
      continue;
    }
    TimedCall call = found->second.second;
    call.size = Bytes(positive_number(points, row.cells[1], "size_B", problems));
    call.time = Seconds(positive_number(points, row.cells[2], "time_s", problems));
    sweeps[found->second.first].calls.push_back(call);
  }
  problems.raise();
  return sweeps;
}

}  // namespace scapesim::calib
