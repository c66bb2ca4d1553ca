// SPDX-License-Identifier: Apache-2.0
// What nccl-tests' text and JSON have in common: names of tests, the bus-bandwidth check, and what
// variables say about algorithm and protocol.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "calib/observations.hpp"

namespace scapesim::calib {

/// A test program ("all_reduce_perf") that some text names.
struct NcclTest {
  std::string name;                           ///< "all_reduce"; empty: none named
  std::optional<graph::CollectiveKind> kind;  ///< none: not a collective of the simulator
};

/// The one test program that a line names; an empty name when it names none or several.
NcclTest nccl_test_in(std::string_view line);

/// The test that a file's name contains ("all_reduce_16n.log"); an empty name when none.
NcclTest nccl_test_of_file(std::string_view file);

/// One of the two results of a row: out of place or in place, as printed.
struct NcclResult {
  std::optional<double> time_us;
  bool cpu_time = false;  ///< -C: time_us is the time to enqueue, the bandwidths are not of it
  double time_error = 0;  ///< half a unit in the last place
  std::optional<double> algbw_GBps;
  double algbw_error = 0;
  std::optional<double> busbw_GBps;
  double busbw_error = 0;
  bool wrong = false;  ///< the check found wrong elements
};

/// The time of a result: as printed, or from algbw where -C hides it and algbw is within 1 %.
std::optional<Seconds> time_of(const NcclResult& result, Bytes size);

/// Whether size / time and its bus bandwidth agree with what is printed, to the rounding of both.
/// [M70] busbw = size / time x the collective's factor (nccl-tests PERFORMANCE.md).
bool agrees(const NcclResult& result, Bytes size, graph::CollectiveKind kind, int ranks);

/// Counts rows whose printed bandwidth disagrees; one warning names the first.
struct BandwidthCheck {
  int rows = 0;
  int disagree = 0;
  Place first;

  void add(bool ok, const Place& place);
  void report(Observations& into) const;
};

/// Fills algorithm and protocol from NCCL_ALGO and NCCL_PROTO where these force one.
void apply_forced_choices(Observations& into);

}  // namespace scapesim::calib
