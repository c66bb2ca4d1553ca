// SPDX-License-Identifier: Apache-2.0
#include "reports/step_details.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "sim/cost/kernels.hpp"
#include "sim/result/attribution.hpp"
#include "sim/result/metrics.hpp"

namespace scapesim::reports {
namespace {

using Json = nlohmann::ordered_json;
using result::Level;
using result::Window;

constexpr double kResolution = 1e-3;  // of the step: what a picture of a column's width can show

Window last_step(const engine::Timeline& timeline) {
  return {timeline.step_begin.back(), timeline.step_end.back()};
}

/// Whether the next block is drawn as part of the one before.
bool joins(const Block& before, const Block& next, Seconds resolution) {
  if (next.kind != before.kind || next.begin - before.end > resolution) return false;
  const bool touches = next.begin <= before.end;
  const bool tiny = next.end - next.begin < resolution || before.end - before.begin < resolution;
  return (touches && next.name == before.name) || tiny;
}

void append(std::vector<Block>& blocks, Block next, Seconds resolution) {
  if (blocks.empty() || !joins(blocks.back(), next, resolution)) {
    blocks.push_back(std::move(next));
    return;
  }
  Block& before = blocks.back();
  if (next.end - next.begin > before.end - before.begin) before.name = next.name;
  before.end = std::max(before.end, next.end);
  before.operations += next.operations;
}

std::vector<StreamBlocks> streams_of(const Prediction& prediction, graph::RankClassId id,
                                     Window window) {
  const graph::RankClass& rank_class = prediction.graph.classes[index(id)];
  const Seconds resolution = kResolution * (window.end - window.begin);
  std::map<graph::Stream, std::vector<Block>> streams;
  for (const engine::Span& span : prediction.timeline.spans) {
    if (span.rank_class != id || result::overlap(span, window) <= Seconds(0)) continue;
    const graph::Operation& operation = rank_class.operations[index(span.op)];
    append(streams[operation.stream],
           {.begin = std::max(span.begin, window.begin) - window.begin,
            .end = std::min(span.end, window.end) - window.begin,
            .name = result::term_name(operation.name),
            .kind = operation.kind},
           resolution);
  }
  std::vector<StreamBlocks> list;
  for (auto& [stream, blocks] : streams) list.push_back({stream, std::move(blocks)});
  return list;
}

/// The levels of the window, from its begin on.
std::vector<Level> within(const std::vector<Level>& levels, Window window) {
  std::vector<Level> list;
  double before = 0;
  for (const Level& level : levels) {
    if (level.time <= window.begin)
      before = level.value;
    else if (level.time <= window.end)
      list.push_back({level.time - window.begin, level.value});
  }
  list.insert(list.begin(), {Seconds(0), before});
  return list;
}

double mean_of(const std::vector<Level>& levels, Seconds length) {
  double sum = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Seconds end = i + 1 < levels.size() ? levels[i + 1].time : length;
    sum += levels[i].value * ((end - levels[i].time) / length);
  }
  return std::max(0.0, sum);
}

const char* name_of_kind(graph::Kind kind) {
  switch (kind) {
    case graph::Kind::compute:
      return "compute";
    case graph::Kind::optimizer:
      return "optimizer";
    case graph::Kind::communication:
      return "communication";
    case graph::Kind::copy:
      return "copy";
    case graph::Kind::host:
      return "host";
  }
  return "";
}

Json block_json(const Block& block) {
  return {block.begin.si(), block.end.si(), name_of_kind(block.kind), block.name, block.operations};
}

Json class_json(const ClassBlocks& rank_class) {
  Json streams = Json::array();
  for (const StreamBlocks& stream : rank_class.streams) {
    Json blocks = Json::array();
    for (const Block& block : stream.blocks) blocks.push_back(block_json(block));
    streams.push_back({{"name", name_of(stream.stream)}, {"blocks", blocks}});
  }
  return {{"name", rank_class.name}, {"ranks", rank_class.ranks}, {"streams", streams}};
}

Json kernel_json(const Kernel& kernel) {
  const bool takes_time = kernel.time > Seconds(0), moves = kernel.bytes > Bytes(0);
  return {{"name", kernel.name},
          {"kind", kernel.kind},
          {"shape", kernel.shape},
          {"calls", kernel.calls},
          {"flops", kernel.flops.si()},
          {"bytes_B", kernel.bytes.si()},
          {"time_s", kernel.time.si()},
          {"flops_per_s", takes_time ? Json((kernel.flops / kernel.time).si()) : Json(nullptr)},
          {"bytes_per_s", takes_time ? Json((kernel.bytes / kernel.time).si()) : Json(nullptr)},
          {"flops_per_byte", moves ? Json(kernel.flops.si() / kernel.bytes.si()) : Json(nullptr)},
          {"total_s", (static_cast<double>(kernel.calls) * kernel.time).si()}};
}

}  // namespace

StepDetails step_details(const Prediction& prediction, const spec::Scenario& scenario,
                         const cost::Profile& profile) {
  StepDetails details;
  if (!std::holds_alternative<result::Run>(prediction.outcome)) return details;
  const Window window = last_step(prediction.timeline);
  details.step = window.end - window.begin;
  for (std::uint32_t c = 0; c < prediction.graph.classes.size(); ++c) {
    const graph::RankClassId id{c};
    details.classes.push_back({.name = prediction.graph.classes[c].name,
                               .ranks = prediction.graph.classes[c].ranks,
                               .streams = streams_of(prediction, id, window)});
  }
  const auto use = result::resource_use(prediction.graph, prediction.timeline);
  for (std::size_t r = 0; r < use.size(); ++r)
    if (!use[r].empty())
      details.resources.push_back({prediction.graph.resources[r].name,
                                   prediction.graph.resources[r].capacity,
                                   mean_of(within(use[r], window), details.step)});
  details.kernels = kernels_of(scenario, profile);
  details.peak = cost::peak(scenario.cluster.gpu, scenario.training.precision);
  details.memory_bandwidth = BytesPerSecond(profile.number("hbm.bandwidth_Bps"));
  return details;
}

Json step_details_json(const StepDetails& details) {
  Json classes = Json::array(), resources = Json::array(), kernels = Json::array();
  for (const ClassBlocks& rank_class : details.classes) classes.push_back(class_json(rank_class));
  for (const ResourceUse& use : details.resources)
    resources.push_back(
        {{"name", use.name}, {"capacity_Bps", use.capacity.si()}, {"use", use.share}});
  for (const Kernel& kernel : details.kernels) kernels.push_back(kernel_json(kernel));
  return {{"timeline",
           {{"step_s", details.step.si()},
            {"columns", {"begin_s", "end_s", "kind", "name", "operations"}},
            {"classes", classes}}},
          {"resources", resources},
          {"kernels", kernels},
          {"roofs",
           {{"flops_per_s", details.peak.si()}, {"bytes_per_s", details.memory_bandwidth.si()}}}};
}

}  // namespace scapesim::reports
