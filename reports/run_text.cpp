// SPDX-License-Identifier: Apache-2.0
// `run` for people: one point in full, or several side by side.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>

#include "reports/table.hpp"
#include "reports/text.hpp"
#include "reports/text_parts.hpp"
#include "sim/base/unit_text.hpp"

namespace scapesim::reports {
namespace {

using result::Run;
using Rows = std::vector<std::vector<std::string>>;

struct BreakdownRow {
  const char* name;
  Seconds result::Breakdown::*part;
};
constexpr std::array<BreakdownRow, 6> kBreakdown = {{
    {"compute", &result::Breakdown::compute},
    {"optimizer", &result::Breakdown::optimizer},
    {"exposed communication", &result::Breakdown::exposed_communication},
    {"copy", &result::Breakdown::copy},
    {"host", &result::Breakdown::host},
    {"bubble", &result::Breakdown::bubble},
}};

struct MemoryRow {
  const char* name;
  Bytes result::Memory::*part;
};
constexpr std::array<MemoryRow, 9> kMemory = {{
    {"parameters", &result::Memory::parameters},
    {"gradients", &result::Memory::gradients},
    {"optimizer", &result::Memory::optimizer},
    {"strategy", &result::Memory::strategy},
    {"activations", &result::Memory::activations},
    {"temporary", &result::Memory::temporary},
    {"allocated at the peak", &result::Memory::total},
    {"context (CUDA, NCCL)", &result::Memory::context},
    {"GPU memory", &result::Memory::capacity},
}};

std::string headline(const Run& run) {
  return fmt::format(
      "{}\n"
      "step time   {}{}\n"
      "throughput  {:.0f} tokens/s, {} MFU{}\n",
      title(run.scenario, run.series, run.gpus), text_of(run.step_time),
      run.has_interval ? fmt::format("  ({} to {}, {:.0f} % interval)", text_of(run.step_time_low),
                                     text_of(run.step_time_high), 100 * run.interval_level)
                       : "",
      run.tokens_per_second.si(), percent(run.mfu),
      run.overlap_fraction
          ? fmt::format(", {} of communication hidden", percent(*run.overlap_fraction))
          : "");
}

/// [M405] [M406] What GPUs that work together do to kernels; empty when nothing.
std::string fleet_text(const Run& run) {
  std::string out;
  if (run.fleet.slowest > 1)
    out = fmt::format("slowest GPU computes {:.1f} % longer than the mean of {}\n",
                      100 * (run.fleet.slowest - 1), run.gpus);
  if (run.fleet.beside > Seconds(0))
    out +=
        fmt::format("beside      collectives kernels take {} longer\n", text_of(run.fleet.beside));
  return out;
}

/// What unequal ranks do to the step; empty when they are equal.
std::string pace_text(const Run& run) {
  if (!run.uneven) return "";
  const result::Uneven& uneven = *run.uneven;
  std::string out;
  if (uneven.steps > 1)
    out = fmt::format("spread      mean of {} drawn steps, {} to {}, standard deviation {}\n",
                      uneven.steps, text_of(uneven.shortest), text_of(uneven.longest),
                      text_of(uneven.deviation));
  return out + fmt::format("slow-down   {:.3f} times the {} of equal ranks\n",
                           uneven.mean / uneven.even, text_of(uneven.even));
}

/// What is trained on what, where that is not all of the model on whole sequences.
std::string data_text(const Run& run) {
  std::string out;
  if (run.trained)
    out += fmt::format(
        "trains      {} of {} parameters, {:.4g} %\n", run.trained->parameters, run.trained->all,
        100 * static_cast<double>(run.trained->parameters) / static_cast<double>(run.trained->all));
  if (const auto& use = run.documents)
    out += fmt::format(
        "documents   {} of the tokens are no padding, a token's document has {:.0f}; the slowest "
        "rank makes the step {:.3f} times as long\n",
        percent(use->useful), use->reach, use->slowest);
  if (const auto& evaluation = run.evaluation) {
    const double steps = evaluation->all() / run.step_time;
    out += fmt::format("evaluation  {} for {} batch{} every {} steps: {:.2f} % on top\n",
                       text_of(evaluation->all()), evaluation->iterations,
                       evaluation->iterations == 1 ? "" : "es", evaluation->interval,
                       100 * steps / evaluation->interval);
  }
  return out;
}

/// [M434] The way to the full batch; empty without a ramp.
std::string ramp_text(const Run& run) {
  if (run.ramp.empty()) return "";
  constexpr std::size_t kMost = 12;
  Rows rows;
  Seconds sum(0);
  std::int64_t steps = 0, sequences = 0;
  const TimeUnit unit = unit_for(run.step_time);
  for (std::size_t i = 0; i < run.ramp.size(); ++i) {
    const result::RampRow& row = run.ramp[i];
    sum += static_cast<double>(row.steps) * row.step_time;
    steps += row.steps;
    sequences += row.steps * row.batch;
    const bool shown =
        run.ramp.size() <= kMost || i < kMost / 2 || i + kMost / 2 >= run.ramp.size();
    if (i == kMost / 2 && !shown)
      rows.push_back({fmt::format("{} more", run.ramp.size() - kMost), "", "", ""});
    if (shown)
      rows.push_back({fmt::format("{}", row.batch), fmt::format("{}", row.steps),
                      in_unit(row.step_time, unit), text_of(sum)});
  }
  const double full = static_cast<double>(sequences) / static_cast<double>(run.batch);
  const double slower = sum / (full * run.step_time);
  return "\nBatch ramp\n" +
         table({{"batch"}, {"steps"}, {"step " + std::string(unit.name)}, {"after"}}, rows, "  ") +
         fmt::format("  {} sequences in {} steps, {:.3f} times as long as at the full batch\n",
                     sequences, steps, slower);
}

/// What a step costs and takes, when the cluster says its price or power; empty otherwise.
std::string price_text(const Run& run) {
  std::string out;
  if (run.cost) out += fmt::format("cost        {} USD per step\n", usd(*run.cost));
  if (run.energy) out += fmt::format("energy      {} kWh per step\n", kwh(*run.energy));
  return out;
}

std::string breakdown_text(const Run& run) {
  const TimeUnit unit = unit_for(run.step_time);
  Rows rows;
  for (const BreakdownRow& row : kBreakdown) {
    const Seconds time = run.breakdown.*row.part;
    const double share = time / run.step_time;
    rows.push_back({row.name, in_unit(time, unit), percent(share), bar(share)});
  }
  rows.push_back({"step", in_unit(run.step_time, unit), percent(1), ""});
  return "\nWhere the step goes (slowest rank, critical path)\n" +
         table({{"", Align::left}, {std::string(unit.name)}, {"share"}, {"", Align::left}}, rows,
               "  ");
}

std::string communication_text(const Run& run) {
  if (run.communication.empty()) return "\nCommunication: none\n";
  Seconds longest(0);
  for (const result::Communication& row : run.communication) longest = std::max(longest, row.time);
  const TimeUnit unit = unit_for(longest);
  Rows rows;
  for (const result::Communication& row : run.communication)
    rows.push_back({row.name, row.collective, fmt::format("{}", row.group_size),
                    fmt::format("{}", row.count), text_of(row.bytes), gbps(row.busbw),
                    in_unit(row.time, unit), in_unit(row.exposed, unit)});
  const std::string name(unit.name);
  return "\nCommunication of one step\n" + table({{"name", Align::left},
                                                  {"collective", Align::left},
                                                  {"ranks"},
                                                  {"calls"},
                                                  {"bytes per call"},
                                                  {"busbw GB/s"},
                                                  {"time " + name},
                                                  {"exposed " + name}},
                                                 rows, "  ");
}

std::string several(std::span<const study::Point> points) {
  std::vector<Column> columns = {{"", Align::left}};
  for (const study::Point& point : points)
    columns.push_back({point.series.empty() ? point.scenario : point.series});
  Rows rows;
  const auto add = [&](std::string name, const std::function<std::string(const Run&)>& cell) {
    std::vector<std::string> row = {std::move(name)};
    for (const study::Point& point : points) {
      const Run* run = study::run_of(point);
      row.push_back(run != nullptr ? cell(*run) : "-");
    }
    rows.push_back(std::move(row));
  };
  Seconds longest(0);
  for (const study::Point& point : points)
    if (const Run* run = study::run_of(point)) longest = std::max(longest, run->step_time);
  const TimeUnit unit = unit_for(longest);
  const std::string in = fmt::format(", {}", unit.name);
  add("step time" + in, [&](const Run& r) { return in_unit(r.step_time, unit); });
  add("  interval from",
      [&](const Run& r) { return r.has_interval ? in_unit(r.step_time_low, unit) : "-"; });
  add("  to", [&](const Run& r) { return r.has_interval ? in_unit(r.step_time_high, unit) : "-"; });
  if (std::ranges::any_of(points, [](const study::Point& point) {
        const Run* run = study::run_of(point);
        return run != nullptr && run->uneven;
      })) {
    add("  drawn steps, std. deviation", [&](const Run& r) {
      return r.uneven && r.uneven->steps > 1 ? in_unit(r.uneven->deviation, unit) : "-";
    });
    add("  over equal ranks", [](const Run& r) {
      return r.uneven ? fmt::format("{:.3f}", r.uneven->mean / r.uneven->even) : "-";
    });
  }
  for (const BreakdownRow& part : kBreakdown)
    add(fmt::format("{}{}", part.name, in),
        [&](const Run& r) { return in_unit(r.breakdown.*part.part, unit); });
  add("communication hidden",
      [](const Run& r) { return r.overlap_fraction ? percent(*r.overlap_fraction) : "none"; });
  add("tokens/s", [](const Run& r) { return fmt::format("{:.0f}", r.tokens_per_second.si()); });
  add("MFU", [](const Run& r) { return percent(r.mfu); });
  const auto any = [&](auto has) {
    return std::ranges::any_of(points, [&](const study::Point& point) {
      const Run* run = study::run_of(point);
      return run != nullptr && has(*run);
    });
  };
  if (any([](const Run& r) { return r.cost.has_value(); }))
    add("USD per step", [](const Run& r) { return r.cost ? usd(*r.cost) : "-"; });
  if (any([](const Run& r) { return r.energy.has_value(); }))
    add("kWh per step", [](const Run& r) { return r.energy ? kwh(*r.energy) : "-"; });
  add("memory, GiB", [](const Run& r) { return gib(r.memory.total + r.memory.context); });
  add("of, GiB", [](const Run& r) { return gib(r.memory.capacity); });
  return table(columns, rows);
}

}  // namespace

std::string memory_text(const result::Memory& memory) {
  Rows rows;
  for (const MemoryRow& row : kMemory) rows.push_back({row.name, gib(memory.*row.part)});
  const Bytes need = memory.total + memory.context;
  const Bytes room = memory.capacity - need;
  const std::string verdict = room >= Bytes(0)
                                  ? fmt::format("fits, {} to spare", gib_text(room))
                                  : fmt::format("does not fit, {} too much", gib_text(-room));
  return "\nMemory of the fullest GPU\n" + table({{"", Align::left}, {"GiB"}}, rows, "  ") + "  " +
         verdict + "\n";
}

std::string runs_text(std::span<const study::Point> points) {
  if (points.size() == 1) {
    const Run* run = study::run_of(points[0]);
    if (run == nullptr) return infeasible_text(points[0]);
    return headline(*run) + fleet_text(*run) + pace_text(*run) + data_text(*run) +
           price_text(*run) + breakdown_text(*run) + communication_text(*run) + ramp_text(*run) +
           memory_text(run->memory) + rests_on(points);
  }
  std::string out =
      fmt::format("{}\n\n{}", title(points[0].scenario, "", points[0].gpus), several(points));
  for (const study::Point& point : points)
    if (study::run_of(point) == nullptr) out += "\n" + infeasible_text(point);
  return out + rests_on(points);
}

namespace {

std::string calibration_table(const std::vector<CalibrationRow>& rows) {
  Rows keys;
  for (const CalibrationRow& row : rows)
    keys.push_back({row.key, row.kind == "number" ? fmt::format("{:.4g}", row.value) : "curve",
                    fmt::format("{:.4g} to {:.4g}", row.low, row.high), row.provenance,
                    row.source});
  return table({{"key", Align::left},
                {"value"},
                {"90 % range", Align::left},
                {"provenance", Align::left},
                {"source", Align::left}},
               keys, "  ");
}

}  // namespace

std::string explanation_text(const study::Point& point, const Explanation& explanation) {
  const Run* run = study::run_of(point);
  if (run == nullptr) return infeasible_text(point);
  const TimeUnit unit = unit_for(run->step_time);
  Rows terms;
  for (const result::Term& term : explanation.terms)
    terms.push_back({term.name, in_unit(term.time, unit), percent(term.time / run->step_time),
                     term.formula, term.calibration});
  terms.push_back({"step", in_unit(run->step_time, unit), percent(1), "", ""});
  return fmt::format("{}\nstep time {}, term by term (formulas: MODEL.md)\n\n",
                     title(run->scenario, run->series, run->gpus), text_of(run->step_time)) +
         table({{"term", Align::left},
                {std::string(unit.name)},
                {"share"},
                {"formula", Align::left},
                {"calibration", Align::left}},
               terms, "  ") +
         fmt::format("\nCalibration {} (SI units; of a curve the 90 % range is a factor)\n",
                     run->calibration) +
         calibration_table(explanation.calibration);
}

std::string profile_text(const cost::Profile& profile) {
  const ProfileKeys all = keys_named(profile, "*");
  return fmt::format("{}: {}\n{}\n\nSI units; of a curve the 90 % range is a factor\n", profile.id,
                     profile.machine, profile.note) +
         calibration_table(calibration_rows(profile, all));
}

}  // namespace scapesim::reports
