// SPDX-License-Identifier: Apache-2.0
// nvbandwidth -j. Matrix cells are GB/s as text, or ns in latency tests; "N/A" where a test makes
// no sense. Failed tests are counted as unparsed with their status.
#include <fmt/format.h>

#include "calib/import.hpp"
#include "calib/import_json.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

struct Kind {
  CopyDirection direction;
  Beside beside;
};

/// What a test copies, from its name; none: sums over GPUs and tests that are not known.
std::optional<Kind> kind_of(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  const Beside reverse = has("bidirectional") ? Beside::reverse_copy : Beside::nothing;
  if (has("one_to_all") || has("all_to_one")) return std::nullopt;
  if (has("host_to_all")) return Kind{CopyDirection::host_to_device, Beside::other_gpus};
  if (has("all_to_host")) return Kind{CopyDirection::device_to_host, Beside::other_gpus};
  if (has("host_to_device")) return Kind{CopyDirection::host_to_device, reverse};
  if (has("device_to_host")) return Kind{CopyDirection::device_to_host, reverse};
  if (has("device_to_device")) return Kind{CopyDirection::device_to_device, reverse};
  if (has("device_local_copy")) return Kind{CopyDirection::local, Beside::nothing};
  return std::nullopt;
}

/// Rows to use: a two-way test between GPUs writes one matrix per direction and their sum, one
/// after the other.
std::size_t rows_to_use(const Json& matrix, const Kind& kind) {
  const std::size_t rows = matrix.size();
  const std::size_t columns = matrix.empty() ? 0 : matrix.front().size();
  const bool with_sum = kind.direction == CopyDirection::device_to_device &&
                        kind.beside == Beside::reverse_copy && rows == 3 * columns;
  return with_sum ? 2 * columns : rows;
}

void read_test(const Json& test, const Place& place, Observations& out) {
  const std::string name = text_in(test, "name");
  const std::string status = text_in(test, "status");
  const Json& matrix = member(test, "bandwidth_matrix");
  const bool latency =
      text_in(test, "bandwidth_description").ends_with("(ns)") || name.find("latency") != name.npos;
  const std::optional<Kind> kind = kind_of(name);
  if (status != "Passed" || !matrix.is_array())
    return add_unparsed(test, status.empty() ? "no status" : status, out);
  if (!latency && !kind) return add_unparsed(test, "a test that is not used", out);
  const std::size_t rows = latency ? matrix.size() : rows_to_use(matrix, *kind);
  for (std::size_t i = 0; i < rows; ++i)
    for (const Json& cell : matrix[i]) {
      const Json holder = {{"value", cell}};
      const std::optional<double> value = positive_in(holder, "value");
      if (!value && cell != "N/A")
        add_unparsed(holder, name, out);
      else if (value && latency)
        out.latencies.push_back({name, Seconds(*value * 1e-9), place});
      else if (value)
        out.copies.push_back({.direction = kind->direction,
                              .beside = kind->beside,
                              .name = name,  // the file does not say
                              .rate = BytesPerSecond(*value * 1e9),
                              .place = place});
    }
}

/// "0: NVIDIA H200: 00000000:19:00" -> "NVIDIA H200"
std::string name_in(const std::string& device) {
  const std::size_t begin = device.find(": ");
  if (begin == device.npos) return device;
  return device.substr(begin + 2, device.find(':', begin + 2) - begin - 2);
}

}  // namespace

bool recognises_nvbandwidth(std::string_view text) { return has_outer_keys(text, {"nvbandwidth"}); }

Observations read_nvbandwidth(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file);
  const Json& root = member(document, "nvbandwidth");
  Observations out;
  for (const char* key : {"version", "git_version", "Driver Version"})
    if (const std::string value = text_in(root, key); !value.empty())
      out.provenance[std::string("nvbandwidth ") + key] = value;
  if (const std::string error = text_in(root, "error"); !error.empty())
    warn(out, {.file = file}, "nvbandwidth reports an error: " + error);
  for (const Json& gpu : list_in(root, "GPU Device list"))
    if (gpu.is_string()) add_gpu_name(name_in(gpu.get<std::string>()), out.machine);
  for (const Json& test : list_in(root, "testcases")) read_test(test, {.file = file}, out);
  require_samples(out, file, "test that passed", "nvbandwidth.testcases lists none");
  return out;
}

}  // namespace scapesim::calib
