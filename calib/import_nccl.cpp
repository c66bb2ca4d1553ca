// SPDX-License-Identifier: Apache-2.0
#include "calib/import_nccl.hpp"

#include <cctype>
#include <cmath>
#include <fmt/format.h>

#include "calib/import_text.hpp"
#include "sim/result/metrics.hpp"

namespace scapesim::calib {

namespace {

using graph::CollectiveKind;

struct TestName {
  std::string_view name;
  std::optional<CollectiveKind> kind;
};

constexpr TestName kTests[] = {{"all_reduce", CollectiveKind::all_reduce},
                               {"all_gather", CollectiveKind::all_gather},
                               {"reduce_scatter", CollectiveKind::reduce_scatter},
                               {"broadcast", CollectiveKind::broadcast},
                               {"alltoall", CollectiveKind::all_to_all},
                               {"sendrecv", CollectiveKind::send_recv},
                               {"reduce", {}},
                               {"gather", {}},
                               {"scatter", {}},
                               {"hypercube", {}},
                               {"alltoallv", {}}};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

NcclTest nccl_test_in(std::string_view line) {
  constexpr std::string_view kEnd = "_perf";
  NcclTest found;
  for (std::size_t at = line.find(kEnd); at != line.npos; at = line.find(kEnd, at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_word(line[begin - 1])) --begin;
    const std::string_view name = line.substr(begin, at - begin);
    for (const TestName& test : kTests) {
      if (test.name != name) continue;
      if (!found.name.empty() && found.name != name) return {};
      found = {std::string(name), test.kind};
    }
  }
  return found;
}

NcclTest nccl_test_of_file(std::string_view file) {
  const std::string_view name = file.substr(file.find_last_of('/') + 1);
  for (const TestName& test : kTests)
    if (test.kind && name.find(test.name) != name.npos) return {std::string(test.name), test.kind};
  return {};
}

std::optional<Seconds> time_of(const NcclResult& result, Bytes size) {
  if (!result.cpu_time)
    return result.time_us ? std::optional(Seconds(*result.time_us * 1e-6)) : std::nullopt;
  constexpr double kPrecise = 0.01;
  if (!result.algbw_GBps || result.algbw_error > kPrecise * *result.algbw_GBps) return std::nullopt;
  return size / BytesPerSecond(*result.algbw_GBps * 1e9);
}

bool agrees(const NcclResult& result, Bytes size, graph::CollectiveKind kind, int ranks) {
  const std::optional<Seconds> time = time_of(result, size);
  if (!time || !result.busbw_GBps) return true;
  const double factor = result::busbw_factor(kind, ranks);
  const double computed = factor * (size / *time).si() / 1e9;
  const double relative_error = result.cpu_time ? result.algbw_error / *result.algbw_GBps
                                                : result.time_error / *result.time_us;
  constexpr double kArithmetic = 1e-6;  // the tool divides in another order
  return std::abs(computed - *result.busbw_GBps) <=
         result.busbw_error + computed * (relative_error + kArithmetic);
}

void BandwidthCheck::add(bool ok, const Place& place) {
  ++rows;
  if (ok) return;
  if (disagree == 0) first = place;
  ++disagree;
}

void BandwidthCheck::report(Observations& into) const {
  if (disagree == 0) return;
  warn(into, first,
       fmt::format("{} of {} rows print another bus bandwidth than size, time and ranks give",
                   disagree, rows),
       "times are used; check that the rank lines belong to these rows");
}

void apply_forced_choices(Observations& into) {
  const auto forced = [&](const char* variable) -> std::string {
    const auto found = into.environment.find(variable);
    if (found == into.environment.end()) return {};
    const std::string value = lower_case(found->second);
    const bool one_word =
        value.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos;
    return one_word ? value : std::string();
  };
  const std::string algorithm = forced("NCCL_ALGO");
  const std::string protocol = forced("NCCL_PROTO");
  for (CollectiveSample& sample : into.collectives) {
    sample.algorithm = algorithm;
    sample.protocol = protocol;
  }
}

}  // namespace scapesim::calib
