// SPDX-License-Identifier: Apache-2.0
#include "calib/rows.hpp"

#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"

namespace scapesim::calib {

namespace {

Csv read(const std::filesystem::path& file, std::span<const std::string_view> columns) {
  return parse_csv(read_file(file, "measured rows"), file.string(), columns);
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

std::vector<DenseRow> dense_rows(const std::filesystem::path& file) {
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
  std::vector<DenseRow> rows;
  for (const CsvRow& row : csv.rows) {
    const std::string& metric = row.cells[8].text;
    const bool wanted = metric == "computation_s" || metric == "communication_s";
    if (row.cells[2].text != "dense" || !wanted) continue;
    rows.push_back({.model = row.cells[0].text,
                    .distributed_optimizer = row.cells[3].text == "1",
                    .gpus = positive_integer(csv, row.cells[7], "gpus", problems),
                    .metric = metric,
                    .time = Seconds(positive_number(csv, row.cells[9], "value", problems))});
  }
  problems.raise();
  return rows;
}

}  // namespace scapesim::calib
