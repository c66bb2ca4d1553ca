// SPDX-License-Identifier: Apache-2.0
// Where an algorithm writes its transfers down: what every link carries in all of them, and, if
// asked, the transfers themselves with what each waits for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "topologies/fabric.hpp"

namespace scapesim::plan {

using TransferId = std::uint32_t;

/// Bytes that cross some links at one rate. In a pipeline every piece of them waits for the same
/// piece of other transfers.
struct Transfer {
  std::vector<topology::LinkId> links;
  std::uint64_t units = 0;
  Seconds fabric_latency;      ///< between nodes
  bool between_nodes = false;  ///< else inside one
  std::vector<TransferId> after;
};

class Sheet {
 public:
  /// flows: per link only. sends: also every transfer, what follows itself along a ring as one.
  /// pieces: every transfer with what it waits for.
  enum class Keep { flows, sends, pieces };
  explicit Sheet(const topology::Fabric& fabric, Keep keep = Keep::flows);

  /// From one GPU to another along the fabric's route.
  TransferId send(topology::GpuId from, topology::GpuId to, std::uint64_t units,
                  std::span<const TransferId> after = {});
  TransferId send(topology::GpuId from, topology::GpuId to, std::uint64_t units,
                  std::initializer_list<TransferId> after) {
    return send(from, to, units, std::span(after.begin(), after.size()));
  }
  /// Over all of these links at once: a switch inside a node, or the network's, that reduces what
  /// comes in or copies what goes out.
  TransferId spread(std::span<const topology::LinkId> links, std::uint64_t units,
                    Seconds fabric_latency, std::span<const TransferId> after = {});

  const topology::Fabric& fabric() const { return fabric_; }
  Keep keep() const { return keep_; }
  const std::vector<std::uint64_t>& flows() const { return flows_; }  ///< units per link
  const std::vector<Transfer>& transfers() const { return transfers_; }
  Seconds fabric_latency() const { return fabric_latency_; }  ///< the largest of a transfer

 private:
  TransferId record(std::uint64_t units, Seconds latency, bool between,
                    std::span<const TransferId> after);

  const topology::Fabric& fabric_;
  Keep keep_;
  std::vector<std::uint64_t> flows_;
  std::vector<Transfer> transfers_;
  std::vector<topology::LinkId> path_;  ///< of the transfer at hand
  Seconds fabric_latency_;
  std::uint32_t count_ = 0;
};

}  // namespace scapesim::plan
