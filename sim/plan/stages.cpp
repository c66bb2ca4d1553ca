// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stages.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace scapesim::plan {

namespace {

using workload::Layer;
using workload::Role;

bool is_block(const Layer& layer) { return layer.role == Role::block; }

/// Transformer layers of every part.
std::vector<int> block_counts(const spec::Scenario& scenario) {
  const spec::Parallelism& parallelism = scenario.parallelism;
  if (!parallelism.stage_layers.empty()) return parallelism.stage_layers;
  const int count = parts(pipeline_of(scenario));
  return std::vector<int>(static_cast<std::size_t>(count), scenario.model.layers / count);
}

/// A layer without its operations.
Layer resident_part(const Layer& layer) {
  Layer part;
  part.name = layer.name;
  part.role = layer.role;
  part.tensors = layer.tensors;
  part.frozen = layer.frozen;
  part.rests = layer.rests;
  part.kept = layer.kept;
  part.transient = layer.transient;
  return part;
}

}  // namespace

std::vector<Part> parts_of(const workload::Workload& workload, const spec::Scenario& scenario) {
  const std::vector<int> counts = block_counts(scenario);
  const auto& layers = workload.layers;
  const auto first = std::ranges::find_if(layers, is_block) - layers.begin();
  std::vector<Part> list;
  auto begin = static_cast<std::size_t>(first);
  for (const int count : counts) {
    list.push_back({begin, begin + static_cast<std::size_t>(count)});
    begin = list.back().end;
  }
  SCAPESIM_CHECK(begin <= layers.size() && (begin == layers.size() || !is_block(layers[begin])),
                 "{} layers in {} parts", layers.size(), counts.size());
  list.front().begin = 0;
  list.back().end = layers.size();
  return list;
}

workload::Workload stage_workload(const workload::Workload& workload,
                                  const spec::Scenario& scenario, const std::vector<Part>& parts,
                                  int stage) {
  const Pipeline pipeline = pipeline_of(scenario);
  workload::Workload held;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    const Part& part = parts[static_cast<std::size_t>(part_of(pipeline, stage, chunk))];
    for (std::size_t i = part.begin; i < part.end; ++i) {
      held.layers.push_back(resident_part(workload.layers[i]));
      held.layers.back().like = held.layers.size() - 1;
    }
  }
  for (const Layer& layer : held.layers)
    for (const workload::Tensor& tensor : layer.tensors) {
      held.parameters += tensor.numel;
      held.largest_tensor = std::max(held.largest_tensor, tensor.numel);
    }
  held.trainable_parameters = held.active_parameters = held.parameters;
  held.model_flops = workload.model_flops;
  return held;
}

}  // namespace scapesim::plan
