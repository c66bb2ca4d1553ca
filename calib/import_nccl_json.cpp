// SPDX-License-Identifier: Apache-2.0
// nccl-tests -J. The file holds the whole environment: only NCCL_* and CUDA_* are kept.
#include <algorithm>
#include <cmath>
#include <set>

#include "calib/import.hpp"
#include "calib/import_json.hpp"
#include "calib/import_nccl.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

struct Ranks {
  int count = 0;
  int nodes = 0;
};

/// The file lists the first rank of every process only, or all ranks; ranks count over processes.
Ranks ranks_of(const Json& config, Machine& machine) {
  const Json& devices = list_in(config, "devices");
  if (devices.empty()) return {};
  const int threads = count_in(config, "nthreads").value_or(1);
  const int gpus = count_in(config, "ngpus").value_or(1);
  const double per_process = static_cast<double>(threads) * gpus;
  std::set<double> ranks;
  std::set<std::string> hosts;
  for (const Json& device : devices) {
    ranks.insert(number_in(device, "rank").value_or(-1));
    hosts.insert(text_in(device, "hostname"));
    add_gpu_name(text_in(device, "device_info"), machine);
  }
  const bool firsts_only =
      std::ranges::all_of(ranks, [&](double rank) { return std::fmod(rank, per_process) == 0; });
  const double count = static_cast<double>(ranks.size()) * (firsts_only ? per_process : 1);
  constexpr double kMost = 1e7;
  if (*ranks.begin() != 0 || count > kMost || *ranks.rbegin() >= count) return {};
  machine.gpus = static_cast<int>(count);
  machine.hosts = static_cast<int>(hosts.size());
  return {*machine.gpus, *machine.hosts};
}

NcclResult result_of(const Json& result) {
  NcclResult read;
  constexpr double kPrinted = 5e-7;  // six decimals
  read.cpu_time = member(result, "time").is_null();
  read.time_us = positive_in(result, read.cpu_time ? "cpu_time" : "time");
  read.algbw_GBps = positive_in(result, "alg_bw");
  read.busbw_GBps = number_in(result, "bus_bw");
  read.time_error = read.algbw_error = read.busbw_error = kPrinted;
  read.wrong = number_in(result, "nwrong").value_or(0) > 0;
  return read;
}

NcclTest test_of(const Json& root, const std::string& file) {
  for (const Json& argument : list_in(root, "args"))
    if (argument.is_string())
      if (NcclTest test = nccl_test_in(argument.get<std::string>()); !test.name.empty())
        return test;
  return nccl_test_of_file(file);
}

void read_result(const Json& row, const NcclTest& test, const Ranks& ranks, const Place& place,
                 BandwidthCheck& check, Observations& out) {
  const Bytes size(positive_in(row, "size").value_or(0));
  std::optional<Seconds> times[2];
  const char* const names[2] = {"out_of_place", "in_place"};
  for (int i = 0; i < 2; ++i) {
    const NcclResult result = result_of(member(row, names[i]));
    if (!result.wrong && size > Bytes(0)) times[i] = time_of(result, size);
    if (times[i]) check.add(agrees(result, size, *test.kind, ranks.count), place);
  }
  if (!times[0] && !times[1]) return add_unparsed(row, "no usable time", out);
  out.collectives.push_back({.kind = *test.kind,
                             .size = size,
                             .ranks = ranks.count,
                             .nodes = ranks.nodes,
                             .ranks_per_node = ranks.count % ranks.nodes == 0
                                                   ? std::optional(ranks.count / ranks.nodes)
                                                   : std::nullopt,
                             .time = times[0] ? *times[0] : *times[1],
                             .in_place = times[1],
                             .datatype = lower_case(text_in(row, "type")),
                             .place = place});
}

}  // namespace

bool recognises_nccl_json(std::string_view text) {
  return has_outer_keys(text, {"start_time", "args", "env"});
}

Observations read_nccl_json(std::string_view text, const std::string& file) {
  const Json root = parse_json(text, file);
  Observations out;
  for (const Json& variable : list_in(root, "env"))
    if (variable.is_string()) {
      const auto& entry = variable.get_ref<const std::string&>();
      const std::size_t equals = entry.find('=');
      if (equals != entry.npos && may_keep(entry.substr(0, equals)))
        out.environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
  if (const auto version = number_in(root, "nccl_version"))
    out.provenance["nccl"] = std::to_string(static_cast<std::int64_t>(*version));
  out.provenance["date"] = text_in(root, "start_time");

  const auto fail = [&](std::string what, std::string hint) {
    throw InputError(Problem{{.file = file}, "", std::move(what), std::move(hint)});
  };
  const NcclTest test = test_of(root, file);
  if (!test.kind)
    fail(test.name.empty() ? "no test named in \"args\""
                           : test.name + ": not a collective of the simulator",
         "all_reduce_perf, all_gather_perf, reduce_scatter_perf, broadcast_perf, alltoall_perf and "
         "sendrecv_perf are");
  const Json& results = member(root, "results");
  if (!results.is_array()) fail("no results", "the run failed before its first row");
  const Ranks ranks = ranks_of(member(root, "config"), out.machine);
  if (ranks.count < 2)
    fail("fewer than two ranks, or a broken list of devices", "see config.devices");
  BandwidthCheck check;
  for (const Json& row : results) read_result(row, test, ranks, {.file = file}, check, out);
  check.report(out);
  apply_forced_choices(out);
  require_samples(out, file, "result", "each needs a size and a time");
  return out;
}

}  // namespace scapesim::calib
