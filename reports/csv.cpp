// SPDX-License-Identifier: Apache-2.0
#include "reports/csv.hpp"

#include <fmt/format.h>
#include <vector>

namespace scapesim::reports {
namespace {

using result::Run;

std::string cell(const std::string& text) { return csv_cell(text); }

/// The shortest digits that read back to the same double.
std::string cell(double value) { return fmt::format("{}", value); }

template <Dim D>
std::string cell(Quantity<D> value) {
  return cell(value.si());
}

template <class T>
std::string cell(const std::optional<T>& value) {
  return value ? cell(*value) : "";
}

std::string bound(const Run& run, Seconds value) { return run.has_interval ? cell(value) : ""; }

struct Column {
  const char* name;
  std::string (*text)(const Run&);
};
#define SCAPESIM_COLUMN(name, expression)                        \
  {                                                              \
    name, [](const Run& r) -> std::string { return expression; } \
  }
constexpr Column kColumns[] = {
    SCAPESIM_COLUMN("hash", cell(r.hash)),
    SCAPESIM_COLUMN("calibration", cell(r.calibration)),
    SCAPESIM_COLUMN("weakest_provenance", cell(r.weakest_provenance)),
    SCAPESIM_COLUMN("version", cell(r.version)),
    SCAPESIM_COLUMN("step_time_s", cell(r.step_time)),
    SCAPESIM_COLUMN("step_time_low_s", bound(r, r.step_time_low)),
    SCAPESIM_COLUMN("step_time_high_s", bound(r, r.step_time_high)),
    SCAPESIM_COLUMN("tokens_per_s", cell(r.tokens_per_second)),
    SCAPESIM_COLUMN("mfu", cell(r.mfu)),
    SCAPESIM_COLUMN("efficiency", cell(r.efficiency)),
    SCAPESIM_COLUMN("compute_s", cell(r.breakdown.compute)),
    SCAPESIM_COLUMN("optimizer_s", cell(r.breakdown.optimizer)),
    SCAPESIM_COLUMN("exposed_communication_s", cell(r.breakdown.exposed_communication)),
    SCAPESIM_COLUMN("copy_s", cell(r.breakdown.copy)),
    SCAPESIM_COLUMN("host_s", cell(r.breakdown.host)),
    SCAPESIM_COLUMN("bubble_s", cell(r.breakdown.bubble)),
    SCAPESIM_COLUMN("overlap_fraction", cell(r.overlap_fraction)),
    SCAPESIM_COLUMN("memory_total_B", cell(r.memory.total)),
    SCAPESIM_COLUMN("memory_context_B", cell(r.memory.context)),
    SCAPESIM_COLUMN("memory_capacity_B", cell(r.memory.capacity)),
    SCAPESIM_COLUMN("energy_J", cell(r.energy)),
    SCAPESIM_COLUMN("cost_usd", cell(r.cost)),
};
#undef SCAPESIM_COLUMN

}  // namespace

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string points_csv(std::span<const study::Point> points) {
  std::string out = "scenario,series,gpus";
  for (const Column& column : kColumns) out += fmt::format(",{}", column.name);
  out += ",infeasible\n";
  for (const study::Point& point : points) {
    const Run* run = study::run_of(point);
    out += fmt::format("{},{},{}", cell(point.scenario), cell(point.series), point.gpus);
    for (const Column& column : kColumns) out += "," + (run != nullptr ? column.text(*run) : "");
    out += "," + (run == nullptr ? cell(std::get<result::Infeasible>(point.outcome).reason) : "");
    out += "\n";
  }
  return out;
}

}  // namespace scapesim::reports
