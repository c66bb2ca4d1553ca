// SPDX-License-Identifier: Apache-2.0
#include "reports/trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/result/attribution.hpp"
#include "sim/result/metrics.hpp"
#include "sim/result/use.hpp"

namespace scapesim::reports {
namespace {

using Json = nlohmann::ordered_json;

/// Whole nanoseconds, so that what follows on a stream never begins before what precedes it ends.
double nanoseconds(Seconds time) { return std::round(time.si() * 1e9); }

Json metadata(std::string_view what, std::size_t process, int thread, Json arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", arguments}};
}

/// Names of the processes and threads; `first` is the process of the first rank class.
void add_names(const Prediction& prediction, const std::string& series, std::size_t first,
               Json& events) {
  for (std::size_t c = 0; c < prediction.graph.classes.size(); ++c) {
    const graph::RankClass& rank_class = prediction.graph.classes[c];
    const std::string name =
        fmt::format("{}{}{} ({} rank{})", series, series.empty() ? "" : ": ", rank_class.name,
                    rank_class.ranks, rank_class.ranks == 1 ? "" : "s");
    events.push_back(metadata("process_name", first + c, 0, {{"name", name}}));
    std::set<graph::Stream> used;
    for (const graph::Operation& op : rank_class.operations) used.insert(op.stream);
    for (const graph::Stream stream : used) {
      const int thread = static_cast<int>(stream) + 1;
      events.push_back(metadata("thread_name", first + c, thread, {{"name", name_of(stream)}}));
      events.push_back(metadata("thread_sort_index", first + c, thread, {{"sort_index", thread}}));
    }
  }
}

Json arguments(const graph::StepGraph& graph, const graph::Operation& op,
               const engine::Span& span) {
  Json args = {{"step", span.step}};
  if (!op.formula.empty()) args["formula"] = op.formula;
  if (!op.calibration.empty()) args["calibration"] = op.calibration;
  if (op.flops > Flops(0)) args["flops"] = op.flops.si();
  if (op.work != graph::Work::collective) {
    if (op.bytes > Bytes(0)) args["bytes_B"] = op.bytes.si();
    return args;
  }
  const graph::Collective& collective = graph.collectives[index(op.collective)];
  args["collective"] = name_of(collective.kind);
  args["algorithm"] = collective.algorithm;
  args["group_size"] = collective.group_size;
  args["bytes_B"] = collective.bytes.si();
  if (const Seconds time = span.end - span.begin; time > Seconds(0))
    args["busbw_Bps"] =
        (result::busbw_factor(collective.kind, collective.group_size) * collective.bytes / time)
            .si();
  return args;
}

Json event(const graph::StepGraph& graph, const engine::Span& span, std::size_t first) {
  const graph::Operation& op = graph.classes[index(span.rank_class)].operations[index(span.op)];
  const double begin = nanoseconds(span.begin);
  return {{"name", op.name},
          {"ph", "X"},
          {"ts", begin / 1e3},
          {"dur", (nanoseconds(span.end) - begin) / 1e3},
          {"pid", first + index(span.rank_class)},
          {"tid", static_cast<int>(op.stream) + 1},
          {"args", arguments(graph, op, span)}};
}

/// Events of one series in order of their begin.
void add_events(const Prediction& prediction, std::size_t first, Json& events) {
  std::vector<const engine::Span*> spans;
  for (const engine::Span& span : prediction.timeline.spans) spans.push_back(&span);
  std::ranges::stable_sort(spans, {}, [](const engine::Span* s) { return s->begin; });
  for (const engine::Span* span : spans) events.push_back(event(prediction.graph, *span, first));
}

/// An arrow from the end of every collective to each operation that waits for it by name.
void add_arrows(const Prediction& prediction, std::size_t first, Json& events) {
  std::uint64_t id = first << 32U;
  const auto bind = [&](const char* phase, const engine::Span& span, double at) {
    const graph::Operation& op =
        prediction.graph.classes[index(span.rank_class)].operations[index(span.op)];
    events.push_back({{"name", "waits for"},
                      {"cat", "dependency"},
                      {"ph", phase},
                      {"id", id},
                      {"ts", at / 1e3},
                      {"pid", first + index(span.rank_class)},
                      {"tid", static_cast<int>(op.stream) + 1}});
  };
  for (const engine::Span& span : prediction.timeline.spans) {
    const auto& operations = prediction.graph.classes[index(span.rank_class)].operations;
    for (const graph::Dependency& wait : operations[index(span.op)].waits_for) {
      if (operations[index(wait.op)].work != graph::Work::collective) continue;
      if (span.step < wait.steps_back) continue;
      const engine::Span& cause =
          result::span_of(prediction.graph, prediction.timeline, span.step - wait.steps_back,
                          span.rank_class, wait.op);
      ++id;
      // Inside the event, so that viewers know which one it leaves.
      bind("s", cause, std::max(nanoseconds(cause.begin), nanoseconds(cause.end) - 1));
      bind("f", span, nanoseconds(span.begin));
      events.back()["bp"] = "e";
    }
  }
}

Json counter(const std::string& name, std::size_t process, const result::Level& level,
             const char* unit, double value) {
  return {{"name", name},
          {"ph", "C"},
          {"ts", nanoseconds(level.time) / 1e3},
          {"pid", process},
          {"args", {{unit, value}}}};
}

/// Use of links and copy engines.
void add_counters(const Prediction& prediction, std::size_t first, Json& events) {
  const auto use = result::resource_use(prediction.graph, prediction.timeline);
  for (std::size_t r = 0; r < use.size(); ++r)
    for (const result::Level& level : use[r])
      events.push_back(counter("use of " + prediction.graph.resources[r].name, first, level,
                               "percent", 100 * std::max(0.0, level.value)));
}

Json origin(const result::Run& run) {
  return {{"scenario", run.scenario}, {"series", run.series},           {"hash", run.hash},
          {"gpus", run.gpus},         {"calibration", run.calibration}, {"version", run.version}};
}

}  // namespace

std::string chrome_trace(std::span<const Prediction> predictions) {
  Json events = Json::array(), origins = Json::array();
  std::size_t first = 1;
  for (const Prediction& prediction : predictions) {
    const auto* run = std::get_if<result::Run>(&prediction.outcome);
    if (run == nullptr) continue;
    add_names(prediction, run->series, first, events);
    add_events(prediction, first, events);
    add_arrows(prediction, first, events);
    add_counters(prediction, first, events);
    origins.push_back(origin(*run));
    first += prediction.graph.classes.size();
  }
  const Json document = {{"traceEvents", std::move(events)},
                         {"displayTimeUnit", "ms"},
                         {"otherData", {{"runs", std::move(origins)}}}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace scapesim::reports
