// SPDX-License-Identifier: Apache-2.0
#include "calib/rows.hpp"

#include <fmt/format.h>

#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"

namespace scapesim::calib {

namespace {

Csv read(const std::filesystem::path& file, std::span<const std::string_view> columns) {
  return parse_csv(read_file(file, "measured rows"), file.string(), columns);
}

bool flag(const Csv& csv, const CsvCell& cell, const std::string& key, Problems& problems) {
  if (cell.text != "0" && cell.text != "1")
    problems.add(place_of(csv, cell), key, fmt::format("\"{}\" is neither 0 nor 1", cell.text));
  return cell.text == "1";
}

}  // namespace

std::vector<GemmRow> gemm_rows(const std::filesystem::path& file) {
  constexpr std::string_view kColumns[] = {"gpu", "dtype", "m", "n", "k", "tflops", "source"};
  const Csv csv = read(file, kColumns);
  Problems problems;
  std::vector<GemmRow> rows;
  for (const CsvRow& row : csv.rows) {
    const auto size = [&](std::size_t i) {
      return positive_integer(csv, row.cells[i], std::string(kColumns[i]), problems);
    };
    const auto precision = find_named<spec::Precision>(row.cells[1].text);
    if (!precision) problems.add(place_of(csv, row.cells[1]), "dtype", "unknown precision");
    rows.push_back(
        {.shape = {.m = size(2), .n = size(3), .k = size(4)},
         .precision = precision.value_or(spec::Precision::bf16),
         .rate = FlopsPerSecond(1e12 * positive_number(csv, row.cells[5], "tflops", problems))});
  }
  problems.raise();
  return rows;
}

std::vector<AttentionRow> attention_rows(const std::filesystem::path& file) {
  constexpr std::string_view kColumns[] = {"library", "head_dim", "sequence",
                                           "pass",    "tflops",   "source"};
  const Csv csv = read(file, kColumns);
  Problems problems;
  std::vector<AttentionRow> rows;
  for (const CsvRow& row : csv.rows)
    rows.push_back(
        {.library = row.cells[0].text,
         .head_dim = positive_integer(csv, row.cells[1], "head_dim", problems),
         .sequence = positive_integer(csv, row.cells[2], "sequence", problems),
         .forward_only = row.cells[3].text == "forward",
         .rate = FlopsPerSecond(1e12 * positive_number(csv, row.cells[4], "tflops", problems))});
  problems.raise();
  return rows;
}

std::vector<VistaRow> vista_rows(const std::filesystem::path& file) {
  constexpr std::string_view kColumns[] = {"model",
                                           "micro_batch",
                                           "strategy",
                                           "distributed_optimizer",
                                           "residual_offload",
                                           "replica_offload",
                                           "density",
                                           "gpus",
                                           "metric",
                                           "value",
                                           "source"};
  const Csv csv = read(file, kColumns);
  Problems problems;
  std::vector<VistaRow> list;
  for (const CsvRow& row : csv.rows) {
    const std::vector<CsvCell>& c = row.cells;
    list.push_back({.model = c[0].text,
                    .strategy = c[2].text,
                    .distributed_optimizer = flag(csv, c[3], "distributed_optimizer", problems),
                    .residual_offload = flag(csv, c[4], "residual_offload", problems),
                    .replica_offload = flag(csv, c[5], "replica_offload", problems),
                    .density = positive_number(csv, c[6], "density", problems),
                    .micro_batch = positive_integer(csv, c[1], "micro_batch", problems),
                    .gpus = positive_integer(csv, c[7], "gpus", problems),
                    .metric = c[8].text,
                    .value = positive_number(csv, c[9], "value", problems)});
  }
  problems.raise();
  return list;
}

}  // namespace scapesim::calib
