// SPDX-License-Identifier: Apache-2.0
// Random step graphs that cannot deadlock: work is laid down in one global order, and an operation
// waits only for earlier ones of its step or for any of the steps before.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/random.hpp"
#include "tests/support/network.hpp"

namespace scapesim::test {

struct RandomShape {
  std::uint64_t most_classes = 4;
  std::uint64_t operations = 60;
  /// Collectives on one stream only, entered by all classes: never two at a time.
  bool one_collective_at_a_time = false;
};

/// A resource of the network, shared by collectives, and one copy engine per class.
struct RandomResources {
  std::uint32_t network = 3;
  graph::ResourceId copy_engine(std::size_t rank_class) const {
    return {network + static_cast<std::uint32_t>(rank_class)};
  }
};

inline graph::Phase random_phase(Random& random) {
  graph::Phase phase;
  phase.latency = random.below(2) ? Seconds(random.uniform(0, 0.1)) : 0_s;
  phase.bytes = Bytes(random.uniform(0, 2));
  if (random.below(3) == 0) phase.rate_cap = BytesPerSecond(random.uniform(0.3, 2));
  for (std::uint32_t resource = 0; resource < RandomResources{}.network; ++resource)
    if (resource == 0 || random.below(2))
      phase.loads.push_back({{resource}, static_cast<double>(1 + random.below(4))});
  return phase;
}

inline graph::Operation random_local_or_copy(std::size_t rank_class, Random& random) {
  using enum graph::Stream;
  if (random.below(3) > 0) {
    const Seconds duration = random.below(8) ? Seconds(random.uniform(0, 0.5)) : 0_s;
    return local(duration, random.below(4) ? compute : host);
  }
  graph::Operation copy;
  copy.name = "copy";
  copy.kind = graph::Kind::copy;
  copy.stream = random.below(2) ? copy_in : copy_out;
  copy.work = graph::Work::transfer;
  copy.transfer.bytes = Bytes(random.uniform(0, 1));
  copy.transfer.loads = {{RandomResources{}.copy_engine(rank_class), 1}};
  return copy;
}

inline void add_random_waits(graph::RankClass& rank_class, graph::Operation& operation,
                             Random& random) {
  const auto earlier = static_cast<std::uint32_t>(rank_class.operations.size());
  for (std::uint64_t n = random.below(3); n > 0 && earlier > 0; --n) {
    const auto op = static_cast<std::uint32_t>(random.below(earlier));
    operation.waits_for.push_back(
        {{op}, random.below(4) ? 0 : 1 + static_cast<int>(random.below(2))});
  }
}

inline void add_random_collective(graph::StepGraph& graph, const RandomShape& shape,
                                  Random& random) {
  const auto id = static_cast<std::uint32_t>(graph.collectives.size());
  graph::Collective& collective = graph.collectives.emplace_back();
  collective.name = "collective " + std::to_string(id);
  for (std::uint64_t n = random.below(3); n > 0; --n)
    collective.phases.push_back(random_phase(random));
  const bool masks = !shape.one_collective_at_a_time && random.below(2);
  for (std::uint32_t c = 0; c < graph.classes.size(); ++c) {
    if (!shape.one_collective_at_a_time && random.below(4) == 0) continue;
    collective.members.push_back({c});
    graph::Operation operation =
        enter(id, masks ? graph::Stream::mask_communication : graph::Stream::communication);
    add_random_waits(graph.classes[c], operation, random);
    graph.classes[c].operations.push_back(operation);
  }
}

inline graph::StepGraph random_graph(std::uint64_t seed, const RandomShape& shape = {}) {
  Random random(seed);
  graph::StepGraph graph;
  graph.period = 1 + static_cast<int>(random.below(2));
  graph.classes.resize(1 + random.below(shape.most_classes));
  for (std::size_t i = 0; i < RandomResources{}.network + graph.classes.size(); ++i)
    graph.resources.push_back({"resource", BytesPerSecond(random.uniform(1, 5))});
  for (graph::RankClass& rank_class : graph.classes) rank_class.operations.push_back(local(0.1_s));
  for (std::uint64_t i = 0; i < shape.operations; ++i) {
    if (random.below(4) == 0) {
      add_random_collective(graph, shape, random);
      continue;
    }
    const std::size_t c = random.below(graph.classes.size());
    graph::Operation operation = random_local_or_copy(c, random);
    add_random_waits(graph.classes[c], operation, random);
    graph.classes[c].operations.push_back(operation);
  }
  return graph;
}

}  // namespace scapesim::test
