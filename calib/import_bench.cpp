// SPDX-License-Identifier: Apache-2.0
// scapesim.bench/1: one JSON object per line, a measurement each, so that an interrupted run leaves
// a valid file. Members of every line: schema, kind, name, samples_s (seconds of each repetition),
// bytes (counted, per repetition), provenance (object of texts: machine, gpu, date, tool, driver).
//   copy        name host-to-device, device-to-host, device-to-device or local; beside
//               nothing (default), reverse copy, other gpus or device memory
//   memory      bytes = read plus written         kernel, attention   shape (text)
//   gemm        m, n, k, dtype; pass wgrad: added to fp32     latency
//   collective  name all-reduce ...; ranks, nodes, dtype, algorithm, protocol, transport; grouped
// A gemm or collective with a text `beside`, or several in one (grouped, repeated), is kept out of
// the fits, as are collectives of one rank: they say how work overlaps, not how fast it is.
//   environment variables (object of texts; NCCL_* and CUDA_* are kept), no samples
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "calib/import.hpp"
#include "calib/import_json.hpp"
#include "calib/import_kernels.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

constexpr std::string_view kSchema = "scapesim.bench/1";

struct Record {
  const Json& json;
  std::string name;
  std::vector<double> samples;  ///< sorted
  std::optional<Bytes> bytes;
  Place place;

  Seconds median() const {
    const std::size_t middle = samples.size() / 2;
    return Seconds(samples.size() % 2 == 1 ? samples[middle]
                                           : (samples[middle - 1] + samples[middle]) / 2);
  }
};

std::vector<double> samples_in(const Json& json) {
  std::vector<double> samples;
  for (const Json& sample : list_in(json, "samples_s"))
    if (sample.is_number() && sample.get<double>() > 0) samples.push_back(sample);
  std::ranges::sort(samples);
  return samples;
}

bool add_copy(const Record& record, Observations& out) {
  const auto direction = find_named<CopyDirection>(record.name);
  const std::string word = text_in(record.json, "beside");
  const std::map<std::string, Beside> words = {{"", Beside::nothing},
                                               {"nothing", Beside::nothing},
                                               {"reverse copy", Beside::reverse_copy},
                                               {"other gpus", Beside::other_gpus},
                                               {"device memory", Beside::device_memory}};
  const auto beside = words.find(word);
  if (!direction || !record.bytes || beside == words.end()) return false;
  out.copies.push_back({.direction = *direction,
                        .beside = beside->second,
                        .name = record.name,
                        .size = record.bytes,
                        .rate = *record.bytes / record.median(),
                        .place = record.place});
  return true;
}

/// Work that was timed beside other work, or several pieces of it at once.
bool is_overlap(const Record& record) {
  return !text_in(record.json, "beside").empty() || positive_in(record.json, "grouped") > 1 ||
         positive_in(record.json, "repeated") > 1;
}

bool add_collective(const Record& record, Observations& out) {
  const auto kind = find_named<graph::CollectiveKind>(record.name);
  const auto ranks = count_in(record.json, "ranks");
  const auto nodes = count_in(record.json, "nodes");
  if (!kind || !record.bytes || !ranks) return false;
  // One rank moves nothing: its time is no network's.
  if (*ranks < 2 || is_overlap(record)) return true;
  out.collectives.push_back({.kind = *kind,
                             .size = *record.bytes,
                             .ranks = *ranks,
                             .nodes = nodes,
                             .ranks_per_node = nodes && *ranks % *nodes == 0
                                                   ? std::optional(*ranks / *nodes)
                                                   : std::nullopt,
                             .time = record.median(),
                             .datatype = lower_case(text_in(record.json, "dtype")),
                             .algorithm = text_in(record.json, "algorithm"),
                             .protocol = text_in(record.json, "protocol"),
                             .transport = text_in(record.json, "transport"),
                             .place = record.place});
  return true;
}

bool add_gemm(const Record& record, Observations& out) {
  const auto m = positive_in(record.json, "m");
  const auto n = positive_in(record.json, "n");
  const auto k = positive_in(record.json, "k");
  if (!m || !n || !k) return false;
  if (is_overlap(record)) return true;
  out.gemms.push_back({*m, *n, *k, lower_case(text_in(record.json, "dtype")), record.median(),
                       record.place, text_in(record.json, "pass") == "wgrad"});
  return true;
}

void add_kernel(const Record& record, KernelClass kind, Observations& out) {
  Seconds total;
  for (const double sample : record.samples) total += Seconds(sample);
  out.kernels.push_back({.kind = kind,
                         .name = record.name,
                         .shape = text_in(record.json, "shape"),
                         .count = static_cast<int>(record.samples.size()),
                         .total = total,
                         .median = record.median(),
                         .bytes = record.bytes,
                         .place = record.place});
}

bool add_record(const Json& json, const Place& place, Observations& out) {
  if (text_in(json, "schema") != kSchema) return false;
  const std::string kind = text_in(json, "kind");
  for (const auto& [key, value] : member(json, "provenance").items())
    if (value.is_string()) out.provenance.emplace(key, value);
  add_gpu_name(text_in(member(json, "provenance"), "gpu"), out.machine);
  if (kind == "environment") {
    for (const auto& [key, value] : member(json, "variables").items())
      if (value.is_string() && may_keep(key)) out.environment.emplace(key, value);
    return true;
  }
  Record record{json, text_in(json, "name"), samples_in(json), std::nullopt, place};
  if (const auto bytes = positive_in(json, "bytes")) record.bytes = Bytes(*bytes);
  if (record.samples.empty() || record.name.empty()) return false;
  if (kind == "copy") return add_copy(record, out);
  if (kind == "collective") return add_collective(record, out);
  if (kind == "gemm") return add_gemm(record, out);
  if (kind == "memory" && record.bytes) {
    out.memory.push_back({record.name, *record.bytes, *record.bytes / record.median(), place});
  } else if (kind == "latency") {
    out.latencies.push_back({record.name, record.median(), place});
  } else if (kind == "attention" || kind == "kernel") {
    add_kernel(record, kind == "attention" ? KernelClass::attention : kernel_class(record.name),
               out);
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool recognises_bench(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  return has_outer_keys(first, {"schema", "kind"}) && first.find(kSchema) != first.npos;
}

Observations read_bench(std::string_view text, const std::string& file) {
  Observations out;
  for (const TextLine& line : lines_of(text)) {
    const Json json = Json::parse(line.text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !add_record(json, {file, line.number, 0}, out))
      add_unparsed(line.number, line.text, Looks::like_data, out);
  }
  require_samples(out, file, "measurement", "see the members that each kind of line needs");
  return out;
}

}  // namespace scapesim::calib
