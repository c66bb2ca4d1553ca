// SPDX-License-Identifier: Apache-2.0
#include "calib/rows.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <utility>

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

/// Place of the cell's text among the words; a problem when it is none of them.
std::size_t one_of(const Csv& csv, const CsvCell& cell, const std::string& key,
                   std::initializer_list<std::string_view> words, Problems& problems) {
  const auto* const found = std::find(words.begin(), words.end(), cell.text);
  if (found == words.end())
    problems.add(place_of(csv, cell), key, fmt::format("\"{}\" is not known", cell.text),
                 fmt::format("one of: {}", fmt::join(words, ", ")));
  return static_cast<std::size_t>(found - words.begin());
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
         .rate = FlopsPerSecond(1e12 * positive_number(csv, row.cells[5], "tflops", problems)),
         .gpu = row.cells[0].text});
  }
  problems.raise();
  return rows;
}

std::vector<GemmRow> grouped_gemm_rows(const std::filesystem::path& file) {
  constexpr std::string_view kColumns[] = {"gpu", "dtype", "output", "groups", "m",
                                           "n",   "k",     "tflops", "source"};
  const Csv csv = read(file, kColumns);
  Problems problems;
  std::vector<GemmRow> rows;
  for (const CsvRow& row : csv.rows) {
    const auto size = [&](std::size_t i) {
      return positive_integer(csv, row.cells[i], std::string(kColumns[i]), problems);
    };
    const auto precision = find_named<spec::Precision>(row.cells[1].text);
    if (!precision) problems.add(place_of(csv, row.cells[1]), "dtype", "unknown precision");
    const bool added =
        one_of(csv, row.cells[2], "output", {"bf16", "bf16 added", "fp32 added"}, problems) == 2;
    rows.push_back(
        {.shape = {.m = size(4),
                   .n = size(5),
                   .k = size(6),
                   .accumulate_fp32 = added,
                   .groups = size(3)},
         .precision = precision.value_or(spec::Precision::bf16),
         .rate = FlopsPerSecond(1e12 * positive_number(csv, row.cells[7], "tflops", problems)),
         .gpu = row.cells[0].text});
  }
  problems.raise();
  return rows;
}

std::vector<AttentionTiming> attention_timings(const std::filesystem::path& file) {
  constexpr std::string_view kColumns[] = {"gpu",   "library",  "batch",    "sequence",
                                           "heads", "kv_heads", "head_dim", "value_head_dim",
                                           "mask",  "pass",     "tflops",   "source"};
  const Csv csv = read(file, kColumns);
  Problems problems;
  std::vector<AttentionTiming> rows;
  for (const CsvRow& row : csv.rows) {
    const auto size = [&](std::size_t i) {
      return positive_integer(csv, row.cells[i], std::string(kColumns[i]), problems);
    };
    const std::size_t mask = one_of(csv, row.cells[8], "mask", {"causal", "none"}, problems);
    const std::size_t passes =
        one_of(csv, row.cells[9], "pass", {"forward", "backward", "both"}, problems);
    rows.push_back(
        {.gpu = row.cells[0].text,
         .library = row.cells[1].text,
         .shape = {.batch = size(2),
                   .sequence = size(3),
                   .heads = size(4),
                   .head_dim = size(6),
                   .causal = mask == 0,
                   .kv_heads = size(5),
                   .value_head_dim = size(7)},
         .passes = static_cast<AttentionTiming::Passes>(passes),
         .rate = FlopsPerSecond(1e12 * positive_number(csv, row.cells[10], "tflops", problems))});
  }
  problems.raise();
  return rows;
}

std::vector<AttentionTiming> timings_of(const std::vector<AttentionRow>& rows, std::string gpu) {
  constexpr std::int64_t kHidden = 2048;
  constexpr std::int64_t kTokens = 16'384;
  std::vector<AttentionTiming> timings;
  for (const AttentionRow& row : rows)
    timings.push_back({.gpu = gpu,
                       .library = row.library,
                       .shape = {.batch = kTokens / row.sequence,
                                 .sequence = row.sequence,
                                 .heads = kHidden / row.head_dim,
                                 .head_dim = row.head_dim},
                       .passes = row.forward_only ? AttentionTiming::Passes::forward
                                                  : AttentionTiming::Passes::both,
                       .rate = row.rate});
  return timings;
}

std::vector<MemoryRow> memory_rows(const std::filesystem::path& file) {
  constexpr std::string_view kColumns[] = {"gpu", "path", "kernel", "rate_GBps", "source"};
  const Csv csv = read(file, kColumns);
  Problems problems;
  std::vector<MemoryRow> rows;
  for (const CsvRow& row : csv.rows) {
    one_of(csv, row.cells[1], "path", {"hbm", "h2d", "d2h"}, problems);
    rows.push_back(
        {.gpu = row.cells[0].text,
         .path = row.cells[1].text,
         .rate = BytesPerSecond(1e9 * positive_number(csv, row.cells[3], "rate_GBps", problems))});
  }
  problems.raise();
  return rows;
}

std::vector<SustainedRow> sustained_rows(const std::filesystem::path& file) {
  constexpr std::string_view kColumns[] = {"profile",  "key",         "row",
                                           "scenario", "step_time_s", "source"};
  const Csv csv = read(file, kColumns);
  Problems problems;
  std::vector<SustainedRow> rows;
  for (const CsvRow& row : csv.rows) {
    one_of(csv, row.cells[1], "key",
           {"gemm.scale", "gpu.clock_scale", "host.launch_s", "host.step_s",
            "hbm.scatter_add_per_s", "network.transport_cap_Bps", "network.crossing_cap_Bps"},
           problems);
    rows.push_back(
        {.profile = row.cells[0].text,
         .key = row.cells[1].text,
         .name = row.cells[2].text,
         .scenario = row.cells[3].text,
         .step_time = Seconds(positive_number(csv, row.cells[4], "step_time_s", problems))});
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
