// SPDX-License-Identifier: Apache-2.0
// NVBench --json: per state the cold GPU time's median (mean in old files) and, where the benchmark
// declares its traffic, bytes and rate. Values are texts or numbers.
#include <fmt/format.h>

#include "calib/import.hpp"
#include "calib/import_json.hpp"
#include "calib/import_kernels.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

/// The value of the summary with this tag.
std::optional<double> summary(const Json& state, std::string_view tag) {
  for (const Json& entry : list_in(state, "summaries")) {
    if (text_in(entry, "tag") != tag) continue;
    for (const Json& item : list_in(entry, "data"))
      if (text_in(item, "name") == "value") return positive_in(item, "value");
  }
  return std::nullopt;
}

/// "T=float Elements=65536"
std::string axes_of(const Json& state) {
  std::string shape;
  for (const Json& axis : list_in(state, "axis_values")) {
    const Json& value = member(axis, "value");
    shape += fmt::format("{}{}={}", shape.empty() ? "" : " ", text_in(axis, "name"),
                         value.is_string() ? value.get<std::string>() : value.dump());
  }
  return shape;
}

void read_state(const Json& state, const std::string& benchmark, const Place& place,
                Observations& out) {
  if (member(state, "is_skipped") == true)
    return add_unparsed(state, "skipped " + text_in(state, "skip_reason"), out);
  const std::optional<double> mean = summary(state, "nv/cold/time/gpu/mean");
  const std::optional<double> median = summary(state, "nv/cold/time/gpu/median");
  const std::optional<double> samples = summary(state, "nv/cold/sample_size");
  if (!mean && !median) return add_unparsed(state, "no nv/cold/time/gpu/median or mean", out);
  const Seconds typical(median ? *median : *mean);
  const Seconds average(mean ? *mean : *median);
  const int count = samples && *samples < 1e9 ? static_cast<int>(*samples) : 1;
  KernelSample kernel{.kind = kernel_class(benchmark),
                      .name = benchmark,
                      .shape = axes_of(state),
                      .count = count,
                      .total = average * count,
                      .median = typical,
                      .place = place};
  // NVBench divides the declared bytes by the mean time.
  if (const auto rate = summary(state, "nv/cold/bw/global/bytes_per_second")) {
    kernel.bytes = BytesPerSecond(*rate) * average;
    out.memory.push_back({benchmark, *kernel.bytes, *kernel.bytes / typical, place});
  }
  out.kernels.push_back(std::move(kernel));
}

}  // namespace

bool recognises_nvbench(std::string_view text) {
  return has_outer_keys(text, {"devices", "benchmarks"});
}

Observations read_nvbench(std::string_view text, const std::string& file) {
  const Json root = parse_json(text, file);
  Observations out;
  for (const Json& device : list_in(root, "devices"))
    add_gpu_name(text_in(device, "name"), out.machine);
  for (const Json& benchmark : list_in(root, "benchmarks")) {
    for (const Json& state : list_in(benchmark, "states"))
      read_state(state, text_in(benchmark, "name"), {.file = file}, out);
  }
  require_samples(out, file, "state with a GPU time", "benchmarks[].states[].summaries[]");
  return out;
}

}  // namespace scapesim::calib
