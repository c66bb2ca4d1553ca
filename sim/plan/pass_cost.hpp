// SPDX-License-Identifier: Apache-2.0
// What a pass through some layers costs: kernels, and exchanges as if they had the network for
// themselves.
#pragma once

#include <map>
#include <vector>

#include "sim/plan/groups.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/schedule.hpp"
#include "sim/plan/stages.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::plan {

/// An exchange beside a kernel, both alone.
struct ExchangeBeside {
  Seconds exchange;
  Seconds kernel;
};

/// [M400] What a pass through a layer takes when its kernels take `slowdown` times as long:
/// exchanges and the host's launches keep their times.
struct PaceOfPass {
  Seconds kernels;
  Seconds exchanges;  ///< that hold the kernels up
  std::vector<ExchangeBeside> beside;
  Seconds launches;
  double overlap_slowdown = 0;  ///< [M406] of the kernels beside exchanges
  Seconds at(double slowdown) const;
};

/// A pass as one piece of local work.
struct PassCost {
  Seconds time;
  Flops flops;
  std::vector<graph::Inside> inside;  ///< exchanges within the time
  Seconds launches = {};              ///< of the time: no pass is shorter
};
PassCost& operator+=(PassCost& sum, const PassCost& more);

/// A forward and a backward pass that run as one, through different chunks of a stage.
struct Pair {
  Part forward;
  Part backward;
  auto operator<=>(const Pair&) const = default;
};

/// What a pass has for two engines: kernels, and exchanges of experts.
struct Lanes {
  Seconds kernels;
  Seconds exchanges;
};
/// [M426] Share of their exchanges that two passes hide behind each other's kernels at best.
double hidden_share(const Lanes& forward, const Lanes& backward);

/// Times of exchanges alone on the fabric, all groups of an axis at once.
class ExchangeTimes {
 public:
  ExchangeTimes(const workload::Workload& workload, const Seats& seats,
                const cost::Profile& profile, const spec::Collectives& collectives);
  /// One call, exposed for all of its time.
  graph::Inside inside(const workload::Exchange& exchange) const;
  int ranks(graph::Axis axis) const { return graph::group_size(mesh_, axis); }

 private:
  struct Alone {
    Seconds time;
    std::string algorithm;
    std::string protocol;
  };
  using Key = std::tuple<graph::CollectiveKind, graph::Axis, Bytes>;
  graph::Mesh mesh_;
  std::map<Key, Alone> times_;
};

/// [M11] [M233] Costs of every layer and pass.
class LayerCosts {
 public:
  LayerCosts(const workload::Workload& workload, const cost::KernelCosts& costs,
             const ExchangeTimes& exchanges);
  const PassCost& layer(std::size_t layer, Pass pass) const;
  /// Layers one after the other at another pace; layer() and part() are those of pace 1.
  Seconds slowed(std::size_t begin, std::size_t end, Pass pass, double slowdown,
                 double hidden = 0) const;
  /// All layers of a part, one after the other; `hidden` is the share of the exchanges of experts
  /// that another pass hides.
  PassCost part(std::size_t begin, std::size_t end, Pass pass, double hidden = 0) const;
  /// [M426] What passes that run as one hide of these.
  double hidden_share(const Pair& pair, double slowdown = 1) const;

 private:
  struct Row {
    PassCost of_pass[4];
    PaceOfPass pace[4];
  };
  Lanes lanes(const Part& part, Pass pass, double slowdown) const;
  std::vector<Row> rows_;
  std::vector<std::size_t> row_of_;
};

/// A pass through layers whose exchanges of experts are hidden in part.
PassCost with_hidden(PassCost cost, double share);

/// [M234] Time of a collective that has all its resources for itself.
Seconds time_alone(const graph::Collective& collective,
                   const std::vector<graph::Resource>& resources);

}  // namespace scapesim::plan
