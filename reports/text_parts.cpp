// SPDX-License-Identifier: Apache-2.0
#include "reports/text_parts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "reports/table.hpp"
#include "reports/text.hpp"

namespace scapesim::reports {
namespace {

/// Warnings of one kind that a text over several points shows.
constexpr std::size_t kMostOfACode = 2;

std::vector<const result::Run*> runs_of(std::span<const study::Point> points) {
  std::vector<const result::Run*> runs;
  for (const study::Point& point : points)
    if (const result::Run* run = study::run_of(point)) runs.push_back(run);
  return runs;
}

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
}

bool has(std::span<const result::Warning> list, const result::Warning& warning) {
  return std::ranges::any_of(list, [&](const result::Warning& w) {
    return w.code == warning.code && w.message == warning.message;
  });
}

/// " [AdamS; SCAPE d=0.1 on 32, 64 GPUs]": the series that carry a warning, with the counts when
/// not all of a series do; empty when all points do.
std::string where_of(std::span<const study::Point> points, const result::Warning& warning) {
  std::vector<std::string> series, parts;
  bool everywhere = true;
  for (const result::Run* run : runs_of(points)) add_once(series, run->series);
  for (const std::string& name : series) {
    std::vector<int> with, without;
    for (const result::Run* run : runs_of(points))
      if (run->series == name) (has(run->warnings, warning) ? with : without).push_back(run->gpus);
    everywhere = everywhere && without.empty();
    if (with.empty()) continue;
    const std::string counts =
        without.empty() ? "" : fmt::format("on {} GPUs", fmt::join(with, ", "));
    parts.push_back(name + (name.empty() || counts.empty() ? "" : " ") + counts);
  }
  return everywhere ? "" : fmt::format(" [{}]", fmt::join(parts, "; "));
}

}  // namespace

std::string title(const std::string& scenario, const std::string& series, int gpus) {
  return fmt::format("{}{}{}, {} GPU{}", scenario, series.empty() ? "" : ", ", series, gpus,
                     gpus == 1 ? "" : "s");
}

std::string infeasible_text(const study::Point& point) {
  const auto& infeasible = std::get<result::Infeasible>(point.outcome);
  std::string out = fmt::format("{}: infeasible\n  {}\n",
                                title(point.scenario, point.series, point.gpus), infeasible.reason);
  const result::Memory& memory = infeasible.memory;
  const bool of_host = memory.capacity > Bytes(0) && infeasible.have != memory.capacity;
  if (infeasible.need > Bytes(0))
    out += fmt::format("  needs {} per {}, has {}\n", gib_text(infeasible.need),
                       of_host ? "node" : "GPU", gib_text(infeasible.have));
  if (!infeasible.hint.empty()) out += fmt::format("  {}\n", infeasible.hint);
  if (infeasible.memory.total > Bytes(0)) out += memory_text(infeasible.memory);
  return out;
}

std::string rests_on(std::span<const study::Point> points) {
  std::vector<std::string> calibrations, hashes, versions;
  for (const result::Run* run : runs_of(points)) {
    add_once(calibrations, fmt::format("calibration {}, weakest number used: {}", run->calibration,
                                       run->weakest_provenance));
    add_once(hashes, run->hash);
    add_once(versions, run->version);
  }
  if (calibrations.empty()) return "";
  std::string out = "\nRests on\n";
  for (const std::string& line : calibrations) out += "  " + line + "\n";
  out += fmt::format("  scapesim {}, scenario {}\n", fmt::join(versions, ", "),
                     hashes.size() <= 4
                         ? fmt::format("{}", fmt::join(hashes, " "))
                         : fmt::format("{} and {} more", hashes.front(), hashes.size() - 1));
  return out;
}

std::vector<std::string> warning_notes(std::span<const study::Point> points) {
  std::vector<result::Warning> distinct;
  for (const result::Run* run : runs_of(points))
    for (const result::Warning& warning : run->warnings)
      if (!has(distinct, warning)) distinct.push_back(warning);
  std::vector<std::string> codes;
  for (const result::Warning& warning : distinct) add_once(codes, warning.code);
  std::vector<result::Warning> shown;
  for (const std::string& code : codes) {
    std::size_t count = 0;
    for (const result::Warning& warning : distinct)
      if (warning.code == code && ++count <= kMostOfACode)
        shown.push_back({code, warning.message + where_of(points, warning)});
    if (count > kMostOfACode)
      shown.push_back({code, fmt::format("{} more of this kind; --json lists all of them",
                                         count - kMostOfACode)});
  }
  return warning_notes(std::span<const result::Warning>(shown));
}

std::vector<std::string> warning_notes(std::span<const result::Warning> warnings) {
  std::vector<std::string> notes;
  for (const result::Warning& w : warnings)
    notes.push_back(fmt::format("warning: {}: {}", w.code, w.message));
  return notes;
}

}  // namespace scapesim::reports
