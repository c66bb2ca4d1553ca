// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/chunk.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <queue>
#include <set>
#include <string>

#include "sim/base/check.hpp"
#include "sim/engine/simgrid_engine.hpp"
#include "sim/plan/algorithms.hpp"
#include "sim/plan/link_classes.hpp"
#include "sim/plan/ring.hpp"

namespace scapesim::engine {

namespace {

namespace s4u = simgrid::s4u;
using plan::NetworkTerms;
using topology::Fabric;
using topology::GpuId;
using topology::LinkId;
using topology::LinkKind;

/// Host names and link names are the numbers of the fabric.
std::string host_name(GpuId gpu) { return "gpu" + std::to_string(gpu.value); }

std::uint64_t whole_bytes(Bytes bytes) {
  return static_cast<std::uint64_t>(std::llround(bytes.si()));
}

/// A pair of hosts that a transfer goes between.
struct Route {
  s4u::Host* from;
  s4u::Host* to;
};

/// The part of the fabric that is used, as a zone with a route per pair of neighbours.
class Platform {
 public:
  Platform(const Fabric& fabric, const NetworkTerms& terms)
      : fabric_(fabric), terms_(terms), zone_(s4u::create_full_zone("fabric")) {}

  void add_ring(const plan::Group& ring) {
    for (const GpuId gpu : ring)
      if (hosts_.insert(gpu).second) zone_->create_host(host_name(gpu), 1.0)->seal();
    for (std::size_t i = 0; i < ring.size(); ++i) add_route(ring[i], ring[(i + 1) % ring.size()]);
  }
  /// Equal lists of links have one pair of hosts.
  Route add_links(const std::vector<LinkId>& links) {
    const auto [entry, is_new] = pairs_.try_emplace(links);
    if (!is_new) return entry->second;
    const std::string name = "pair" + std::to_string(pairs_.size());
    entry->second = {zone_->create_host(name + "from", 1.0)->seal(),
                     zone_->create_host(name + "to", 1.0)->seal()};
    add_route(*entry->second.from, *entry->second.to, links);
    return entry->second;
  }
  void seal() { zone_->seal(); }

 private:
  void add_route(GpuId from, GpuId to) {
    if (!routes_.insert({from, to}).second) return;
    add_route(*s4u::Host::by_name(host_name(from)), *s4u::Host::by_name(host_name(to)),
              fabric_.path(from, to));
  }
  void add_route(const s4u::Host& from, const s4u::Host& to, const std::vector<LinkId>& path) {
    std::vector<s4u::LinkInRoute> links;
    for (const LinkId id : path) {
      const topology::Link& link = fabric_.link(id);
      if (!std::isfinite(link.capacity.si())) continue;
      const std::string name = "link" + std::to_string(id.value);
      const BytesPerSecond capacity = plan::usable(link.kind, link.capacity, terms_);
      if (links_.insert(id).second) zone_->create_link(name, capacity.si())->set_latency(0)->seal();
      links.emplace_back(s4u::Link::by_name(name));
    }
    zone_->add_route(from.get_netpoint(), to.get_netpoint(), nullptr, nullptr, links, false);
  }

  const Fabric& fabric_;
  const NetworkTerms& terms_;
  s4u::NetZone* zone_;
  std::set<GpuId> hosts_;
  std::set<LinkId> links_;
  std::set<std::pair<GpuId, GpuId>> routes_;
  std::map<std::vector<LinkId>, Route> pairs_;
};

/// One rank of a ring: it sends a chunk per step to the next rank, from the second step on what it
/// has received in the step before. The hop's latency follows the bytes and holds no link.
struct Member {
  int steps = 0;
  std::uint64_t chunk = 0;
  Seconds hop_latency;  ///< of the hop into this rank
  Seconds base_latency;
  std::string to;
  std::string from;
  Seconds* end = nullptr;  ///< of the call, so far
  std::queue<double> arrivals;
  s4u::SemaphorePtr arrived = s4u::Semaphore::create(0);
  s4u::SemaphorePtr usable = s4u::Semaphore::create(0);

  void send() const {
    int token = 0;
    if (base_latency.si() > 0) s4u::this_actor::sleep_for(base_latency.si());
    for (int step = 0; step < steps; ++step) {
      if (step > 0) usable->acquire();
      s4u::Mailbox::by_name(to)->put(&token, chunk);
    }
  }
  void receive() {
    for (int step = 0; step < steps; ++step) {
      s4u::Mailbox::by_name(from)->get<int>();
      arrivals.push(s4u::Engine::get_clock());
      arrived->release();
    }
  }
  void delay() {
    for (int step = 0; step < steps; ++step) {
      arrived->acquire();
      if (hop_latency.si() > 0) s4u::this_actor::sleep_until(arrivals.front() + hop_latency.si());
      arrivals.pop();
      usable->release();
    }
    *end = std::max(*end, Seconds(s4u::Engine::get_clock()));
  }
};

Seconds hop_latency(const Fabric& fabric, GpuId from, GpuId to, const NetworkTerms& terms) {
  if (fabric.node_of(from) == fabric.node_of(to)) return terms.node_hop_latency;
  return terms.hop_latency.value_or(fabric.latency(from, to));
}

/// Adds and starts one ring of a call; `name` tells its mailboxes from those of other rings.
void start_ring(const Fabric& fabric, const plan::Group& ring, graph::CollectiveKind kind,
                const NetworkTerms& terms, Bytes size, const std::string& name, Seconds* end,
                std::deque<Member>& members) {
  const plan::RingWork work = plan::ring_work(kind, size, static_cast<int>(ring.size()));
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const std::size_t next = (i + 1) % ring.size();
    const std::size_t last = (i + ring.size() - 1) % ring.size();
    Member& member = members.emplace_back();
    member.steps = work.steps;
    member.chunk = whole_bytes(work.bytes / work.steps);
    member.hop_latency = hop_latency(fabric, ring[last], ring[i], terms);
    member.base_latency = terms.base_latency;
    member.to = name + std::to_string(next);
    member.from = name + std::to_string(i);
    member.end = end;
    s4u::Host* host = s4u::Host::by_name(host_name(ring[i]));
    s4u::Actor::create("send", host, [&member] { member.send(); });
    s4u::Actor::create("receive", host, [&member] { member.receive(); });
    s4u::Actor::create("delay", host, [&member] { member.delay(); });
  }
}

/// One transfer of a pipeline: it sends a piece as soon as the same piece of all that it waits for
/// has arrived, and hands it on a latency later.
struct Sender {
  Route route{};
  int pieces = 1;
  std::uint64_t piece = 0;
  Seconds latency;
  std::vector<s4u::SemaphorePtr> waits;     ///< one per transfer waited for
  std::vector<s4u::SemaphorePtr> notifies;  ///< of those that wait for this one, and the call's
  std::queue<double> sent;
  s4u::SemaphorePtr is_sent = s4u::Semaphore::create(0);

  void send() {
    for (int i = 0; i < pieces; ++i) {
      for (const s4u::SemaphorePtr& wait : waits) wait->acquire();
      if (piece > 0) s4u::Comm::sendto(route.from, route.to, piece);
      sent.push(s4u::Engine::get_clock());
      is_sent->release();
    }
  }
  void deliver() {
    for (int i = 0; i < pieces; ++i) {
      is_sent->acquire();
      if (latency.si() > 0) s4u::this_actor::sleep_until(sent.front() + latency.si());
      sent.pop();
      for (const s4u::SemaphorePtr& notify : notifies) notify->release();
    }
  }
};

/// A call other than a ring: its stages one after the other, each with all its senders at once.
class StagedCall {
 public:
  struct Stage {
    Seconds before;  ///< latency that the stage waits as a whole
    std::deque<Sender> senders;
  };
  Stage& add_stage() { return stages_.emplace_back(); }

  void start(s4u::Host* host, Seconds* end) {
    s4u::Actor::create("call", host, [this, end] {
      for (Stage& stage : stages_) run(stage);
      *end = std::max(*end, Seconds(s4u::Engine::get_clock()));
    });
  }

 private:
  void run(Stage& stage) {
    if (stage.before.si() > 0) s4u::this_actor::sleep_for(stage.before.si());
    long open = 0;
    for (Sender& sender : stage.senders) {
      open += sender.pieces;
      sender.notifies.push_back(done_);
      s4u::Actor::create("send", sender.route.from, [&sender] { sender.send(); });
      s4u::Actor::create("deliver", sender.route.from, [&sender] { sender.deliver(); });
    }
    for (; open > 0; --open) done_->acquire();
  }

  std::deque<Stage> stages_;
  s4u::SemaphorePtr done_ = s4u::Semaphore::create(0);
};

Sender sender_of(const plan::Transfer& transfer, Bytes bytes, int pieces, Platform& platform) {
  Sender sender;
  sender.route = platform.add_links(transfer.links);
  sender.pieces = pieces;
  sender.piece = whole_bytes(bytes / pieces);
  return sender;
}

void add_pipeline(const plan::Stage& stage, const plan::Drawn& drawn, Bytes unit, int pieces,
                  Platform& platform, StagedCall& call) {
  const NetworkTerms& terms = drawn.mode.terms;
  auto& senders = call.add_stage().senders;
  for (const plan::Transfer& transfer : stage.sheet.transfers()) {
    Sender& sender = senders.emplace_back(
        sender_of(transfer, static_cast<double>(transfer.units) * unit, pieces, platform));
    sender.latency = transfer.between_nodes ? terms.hop_latency.value_or(transfer.fabric_latency)
                                            : terms.node_hop_latency;
    for (const plan::TransferId before : transfer.after) {
      sender.waits.push_back(s4u::Semaphore::create(0));
      senders[before].notifies.push_back(sender.waits.back());
    }
  }
}

/// All calls in one engine: what is created must outlive its run.
class Simulation {
 public:
  Simulation(const Fabric& fabric, const std::vector<plan::GroupSet>& sets,
             const std::vector<plan::CollectiveCall>& calls, plan::Sheet::Keep keep)
      : fabric_(fabric),
        sets_(sets),
        calls_(calls),
        drawn_(plan::drawn_calls(fabric, sets, calls, keep)),
        platform_(fabric, drawn_.front().mode.terms),
        begin_(s4u::Engine::get_clock()),
        ends_(calls.size(), begin_) {}

  void add_chunks(std::size_t i, int most_pieces) {
    const plan::Drawn& drawn = drawn_[i];
    const auto algorithm = drawn.mode.algorithm;
    if (drawn.stages.empty()) return;
    if (algorithm == graph::Algorithm::ring) return add_rings(i);
    const bool pipelined = plan::row_of(algorithm).flow == plan::Flow::pipelined;
    StagedCall& call = staged_[i];
    if (drawn.mode.terms.base_latency.si() > 0)
      call.add_stage().before = drawn.mode.terms.base_latency;
    for (const plan::Stage& stage : drawn.stages)
      add_pipeline(stage, drawn, plan::unit_of(stage, drawn.times, calls_[i].size),
                   pipelined ? most_pieces : 1, platform_, call);
  }
  void add_flows(std::size_t i, const graph::Collective& collective) {
    const plan::Drawn& drawn = drawn_[i];
    for (std::size_t s = 0; s < drawn.stages.size(); ++s) {
      StagedCall::Stage& stage = staged_[i].add_stage();
      stage.before = collective.phases[s].latency;
      const Bytes unit = plan::unit_of(drawn.stages[s], drawn.times, calls_[i].size);
      for (const plan::Transfer& transfer : drawn.stages[s].sheet.transfers())
        stage.senders.push_back(
            sender_of(transfer, static_cast<double>(transfer.units) * unit, 1, platform_));
    }
  }
  std::vector<Seconds> run(s4u::Engine& engine) {
    platform_.seal();
    for (const RingStart& ring : rings_)
      start_ring(fabric_, ring.ring, calls_[ring.call].kind, drawn_[ring.call].mode.terms,
                 ring.size, ring.name, &ends_[ring.call], members_);
    for (auto& [i, call] : staged_) call.start(engine.get_all_hosts().front(), &ends_[i]);
    engine.run();
    for (Seconds& end : ends_) end -= begin_;
    return ends_;
  }

 private:
  struct RingStart {
    plan::Group ring;
    std::size_t call = 0;
    Bytes size;
    std::string name;
  };
  void add_rings(std::size_t i) {
    SCAPESIM_CHECK(calls_[i].kind != graph::CollectiveKind::broadcast, "{}: no chunks",
                   calls_[i].name);
    std::vector<plan::Group> rings;
    for (const plan::Group& group : sets_[calls_[i].group].groups)
      for (plan::Group& ring : plan::rings_of(fabric_, group)) rings.push_back(std::move(ring));
    const auto groups = static_cast<double>(sets_[calls_[i].group].groups.size());
    for (std::size_t ring = 0; ring < rings.size(); ++ring) {
      platform_.add_ring(rings[ring]);
      rings_.push_back({std::move(rings[ring]), i,
                        calls_[i].size * groups / static_cast<double>(rings.size()),
                        std::to_string(i) + "." + std::to_string(ring) + "."});
    }
  }

  const Fabric& fabric_;
  const std::vector<plan::GroupSet>& sets_;
  const std::vector<plan::CollectiveCall>& calls_;
  std::vector<plan::Drawn> drawn_;
  Platform platform_;
  Seconds begin_;
  std::vector<Seconds> ends_;
  std::vector<RingStart> rings_;
  std::deque<Member> members_;  ///< addresses stay
  std::map<std::size_t, StagedCall> staged_;
};

}  // namespace

std::vector<Seconds> chunk_level_ends(const Fabric& fabric, const std::vector<plan::GroupSet>& sets,
                                      const std::vector<plan::CollectiveCall>& calls,
                                      const ChunkOptions& options) {
  if (calls.empty()) return {};
  SimgridEngine engine;
  Simulation simulation(fabric, sets, calls, plan::Sheet::Keep::pieces);
  for (std::size_t i = 0; i < calls.size(); ++i) simulation.add_chunks(i, options.pieces);
  return simulation.run(*engine);
}

std::vector<Seconds> flow_level_ends(const Fabric& fabric, const std::vector<plan::GroupSet>& sets,
                                     const std::vector<plan::CollectiveCall>& calls) {
  if (calls.empty()) return {};
  const plan::NetworkPlan fluid = plan::plan_collectives(fabric, sets, calls);
  SimgridEngine engine;
  Simulation simulation(fabric, sets, calls, plan::Sheet::Keep::sends);
  for (std::size_t i = 0; i < calls.size(); ++i) simulation.add_flows(i, fluid.collectives[i]);
  return simulation.run(*engine);
}

}  // namespace scapesim::engine
