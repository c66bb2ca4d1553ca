// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/chunk.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <set>
#include <string>

#include "sim/base/check.hpp"
#include "sim/engine/simgrid_engine.hpp"

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

BytesPerSecond usable_capacity(const topology::Link& link, const NetworkTerms& terms) {
  if (inside_node(link.kind)) return terms.node_efficiency * link.capacity;
  const BytesPerSecond line = terms.efficiency * link.capacity;
  const bool capped = link.kind == LinkKind::nic && terms.transport_cap.si() > 0;
  return capped ? std::min(line, terms.transport_cap) : line;
}

/// The part of the fabric that rings use, as a zone with a route per pair of neighbours.
class Platform {
 public:
  Platform(const Fabric& fabric, const NetworkTerms& terms)
      : fabric_(fabric), terms_(terms), zone_(s4u::create_full_zone("fabric")) {}

  void add_ring(const plan::Group& ring) {
    for (const GpuId gpu : ring)
      if (hosts_.insert(gpu).second) zone_->create_host(host_name(gpu), 1.0)->seal();
    for (std::size_t i = 0; i < ring.size(); ++i) add_route(ring[i], ring[(i + 1) % ring.size()]);
  }
  void seal() { zone_->seal(); }

 private:
  void add_route(GpuId from, GpuId to) {
    if (!routes_.insert({from, to}).second) return;
    std::vector<s4u::LinkInRoute> links;
    for (const LinkId id : fabric_.path(from, to)) {
      const topology::Link& link = fabric_.link(id);
      if (link.kind == LinkKind::lane) continue;  // unlimited
      const std::string name = "link" + std::to_string(id.value);
      if (links_.insert(id).second)
        zone_->create_link(name, usable_capacity(link, terms_).si())->set_latency(0)->seal();
      links.emplace_back(s4u::Link::by_name(name));
    }
    zone_->add_route(s4u::Host::by_name(host_name(from))->get_netpoint(),
                     s4u::Host::by_name(host_name(to))->get_netpoint(), nullptr, nullptr, links,
                     false);
  }

  const Fabric& fabric_;
  const NetworkTerms& terms_;
  s4u::NetZone* zone_;
  std::set<GpuId> hosts_;
  std::set<LinkId> links_;
  std::set<std::pair<GpuId, GpuId>> routes_;
};

/// One rank of a ring: it sends a chunk per step to the next rank, from the second step on what it
/// has received in the step before. The hop's latency follows the bytes and holds no link.
struct Member {
  int steps = 0;
  std::uint64_t chunk = 0;
  Seconds hop_latency;  ///< of the hop into this rank
  std::string to;
  std::string from;
  Seconds* end = nullptr;  ///< of the call, so far
  std::queue<double> arrivals;
  s4u::SemaphorePtr arrived = s4u::Semaphore::create(0);
  s4u::SemaphorePtr usable = s4u::Semaphore::create(0);

  void send() const {
    int token = 0;
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
void start_ring(const Fabric& fabric, const plan::Group& ring, const plan::CollectiveCall& call,
                Bytes size, const std::string& name, Seconds* end, std::deque<Member>& members) {
  const plan::RingWork work = plan::ring_work(call.kind, size, static_cast<int>(ring.size()));
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const std::size_t next = (i + 1) % ring.size();
    const std::size_t last = (i + ring.size() - 1) % ring.size();
    Member& member = members.emplace_back();
    member.steps = work.steps;
    member.chunk = static_cast<std::uint64_t>(std::llround((work.bytes / work.steps).si()));
    member.hop_latency = hop_latency(fabric, ring[last], ring[i], call.terms);
    member.to = name + std::to_string(next);
    member.from = name + std::to_string(i);
    member.end = end;
    s4u::Host* host = s4u::Host::by_name(host_name(ring[i]));
    s4u::Actor::create("send", host, [&member] { member.send(); });
    s4u::Actor::create("receive", host, [&member] { member.receive(); });
    s4u::Actor::create("delay", host, [&member] { member.delay(); });
  }
}

}  // namespace

std::vector<Seconds> chunk_level_ends(const Fabric& fabric, const std::vector<plan::GroupSet>& sets,
                                      const std::vector<plan::CollectiveCall>& calls) {
  SimgridEngine engine;
  const Seconds begin(s4u::Engine::get_clock());
  std::vector<Seconds> ends(calls.size(), begin);
  if (calls.empty()) return ends;
  std::vector<std::vector<plan::Group>> rings;
  Platform platform(fabric, calls.front().terms);
  for (const plan::CollectiveCall& call : calls) {
    SCAPESIM_CHECK(call.kind != graph::CollectiveKind::broadcast, "{}: no chunks", call.name);
    std::vector<plan::Group>& list = rings.emplace_back();
    for (const plan::Group& group : sets.at(call.group).groups)
      for (plan::Group& ring : plan::rings_of(fabric, group)) list.push_back(std::move(ring));
    for (const plan::Group& ring : list)
      if (ring.size() > 1) platform.add_ring(ring);
  }
  platform.seal();
  std::deque<Member> members;  // addresses stay
  for (std::size_t i = 0; i < calls.size(); ++i)
    for (std::size_t ring = 0; ring < rings[i].size(); ++ring) {
      const auto groups = static_cast<double>(sets[calls[i].group].groups.size());
      const Bytes share = calls[i].size * groups / static_cast<double>(rings[i].size());
      const std::string name = std::to_string(i) + "." + std::to_string(ring) + ".";
      if (rings[i][ring].size() > 1)
        start_ring(fabric, rings[i][ring], calls[i], share, name, &ends[i], members);
    }
  engine->run();
  for (Seconds& end : ends) end -= begin;
  return ends;
}

}  // namespace scapesim::engine
