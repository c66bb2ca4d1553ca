// SPDX-License-Identifier: Apache-2.0
#include "reports/topology.hpp"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/table.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/base/version.hpp"
#include "topologies/summary.hpp"

namespace scapesim::reports {
namespace {

std::string plural_of(std::string_view name) {
  if (name.ends_with('h')) return fmt::format("{}es", name);
  if (name.ends_with('y')) return fmt::format("{}ies", name.substr(0, name.size() - 1));
  return fmt::format("{}s", name);
}

using Json = nlohmann::ordered_json;
using topology::Fabric;
using topology::Level;

std::string capacity_text(BytesPerSecond capacity) {
  return std::isfinite(capacity.si()) ? text_of(capacity) : "not limited";
}

Json capacity_json(BytesPerSecond capacity) {
  return std::isfinite(capacity.si()) ? Json(capacity.si()) : Json(nullptr);
}

int nodes_of(const TopologyView& view) { return view.fabric.gpus() / view.cluster.gpus_per_node; }

std::string general_text(const TopologyView& view) {
  const Fabric& fabric = view.fabric;
  std::vector<std::vector<std::string>> rows = {{"nodes", std::to_string(nodes_of(view))}};
  for (const auto& [kind, count] : vertex_counts(fabric))
    rows.push_back({plural_of(name_of(kind)), std::to_string(count)});
  rows.push_back({"latency", text_of(view.cluster.fabric.latency) + " end to end between nodes"});
  rows.push_back({"diameter", fmt::format("{} hops from NIC to NIC", fabric.diameter())});
  const BytesPerSecond bisection = fabric.bisection();
  rows.push_back({"bisection", fmt::format("{} per direction, {} per GPU", text_of(bisection),
                                           text_of(bisection / fabric.gpus()))});
  return table({{"", Align::left}, {"", Align::left}}, rows);
}

std::string cables_text(const Fabric& fabric) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [kind, capacity, cables] : cable_counts(fabric))
    rows.push_back({std::string(name_of(kind)), std::to_string(cables), capacity_text(capacity),
                    capacity_text(cables * capacity)});
  return table({{"link", Align::left}, {"count"}, {"per direction"}, {"all"}}, rows);
}

std::string levels_text(std::span<const Level> levels) {
  std::vector<std::vector<std::string>> rows;
  for (const Level& level : levels)
    rows.push_back({std::string(level.name), text_of(level.down), text_of(level.up),
                    fmt::format("{:.2f} : 1", level.taper())});
  return table({{"level", Align::left}, {"from its nodes"}, {"onwards"}, {"oversubscription"}},
               rows);
}

/// Rows of what has a price: name, count, price of one.
struct PricedPart {
  const char* name;
  double count = 0;
  Dollars price;
};

std::vector<PricedPart> priced_parts(const TopologyView& view) {
  const topology::PartsList parts = parts_list(view.cluster, view.fabric);
  std::vector<PricedPart> rows;
  const auto add = [&](const char* name, double count, const std::optional<Dollars>& price) {
    if (price) rows.push_back({name, count, *price});
  };
  add("adapters", parts.nics, view.cluster.nic_price);
  add("cables", parts.cables, view.cluster.cable_price);
  add("switch ports", parts.ports, view.cluster.port_price);
  return rows;
}

std::string prices_text(const std::vector<PricedPart>& parts) {
  std::vector<std::vector<std::string>> rows;
  Dollars total;
  for (const PricedPart& part : parts) {
    rows.push_back({part.name, fmt::format("{:.0f}", part.count),
                    fmt::format("{:.0f}", part.price.si()),
                    fmt::format("{:.0f}", part.count * part.price.si())});
    total += part.count * part.price;
  }
  rows.push_back({"all", "", "", fmt::format("{:.0f}", total.si())});
  return table({{"price list", Align::left}, {"count"}, {"USD each"}, {"USD"}}, rows);
}

Json prices_json(const std::vector<PricedPart>& parts) {
  Json list = Json::array();
  for (const PricedPart& part : parts)
    list.push_back({{"part", part.name},
                    {"count", part.count},
                    {"price_usd", part.price.si()},
                    {"total_usd", (part.count * part.price).si()}});
  return list;
}

std::string path_text(const TopologyView& view) {
  const auto [from, to] = *view.path;
  std::vector<std::vector<std::string>> rows;
  for (const topology::Hop& hop : topology::hops(view.fabric, from, to))
    rows.push_back(
        {hop.from, hop.to, std::string(name_of(hop.link.kind)), capacity_text(hop.link.capacity)});
  return fmt::format("path from GPU {} to GPU {}, latency {}\n", from.value, to.value,
                     text_of(view.fabric.latency(from, to))) +
         table({{"from", Align::left}, {"to", Align::left}, {"link", Align::left}, {"capacity"}},
               rows);
}

Json path_json(const TopologyView& view) {
  if (!view.path) return nullptr;
  const auto [from, to] = *view.path;
  Json links = Json::array();
  for (const topology::Hop& hop : topology::hops(view.fabric, from, to))
    links.push_back({{"from", hop.from},
                     {"to", hop.to},
                     {"link", name_of(hop.link.kind)},
                     {"capacity_Bps", capacity_json(hop.link.capacity)}});
  return {{"from_gpu", from.value},
          {"to_gpu", to.value},
          {"latency_s", view.fabric.latency(from, to).si()},
          {"links", links}};
}

}  // namespace

std::string topology_text(const TopologyView& view) {
  std::string out =
      fmt::format("{}: {}\n\n", view.cluster.name, scapesim::name_of(view.cluster.fabric.kind));
  out += general_text(view) + '\n' + cables_text(view.fabric);
  if (!view.fabric.levels().empty()) out += '\n' + levels_text(view.fabric.levels());
  if (const auto parts = priced_parts(view); !parts.empty()) out += '\n' + prices_text(parts);
  if (view.path) out += '\n' + path_text(view);
  return out;
}

std::string topology_json(const TopologyView& view) {
  const Fabric& fabric = view.fabric;
  Json switches = Json::object(), links = Json::array(), levels = Json::array();
  int nics = 0;
  for (const auto& [kind, count] : vertex_counts(fabric)) {
    if (kind == topology::VertexKind::nic) nics = count;
    if (kind != topology::VertexKind::nic && kind != topology::VertexKind::gpu)
      switches[std::string(name_of(kind))] = count;
  }
  for (const auto& [kind, capacity, cables] : cable_counts(fabric))
    links.push_back({{"link", name_of(kind)},
                     {"count", cables},
                     {"capacity_Bps", capacity_json(capacity)},
                     {"total_Bps", capacity_json(cables * capacity)}});
  for (const Level& level : fabric.levels())
    levels.push_back({{"level", level.name},
                      {"down_Bps", level.down.si()},
                      {"up_Bps", level.up.si()},
                      {"taper", level.taper()}});
  const Json document = {{"schema", "scapesim.topology/1"},
                         {"version", version()},
                         {"cluster", view.cluster.name},
                         {"fabric", scapesim::name_of(view.cluster.fabric.kind)},
                         {"nodes", nodes_of(view)},
                         {"gpus", fabric.gpus()},
                         {"nics", nics},
                         {"switches", switches},
                         {"links", links},
                         {"latency_s", view.cluster.fabric.latency.si()},
                         {"diameter_hops", fabric.diameter()},
                         {"bisection_Bps", fabric.bisection().si()},
                         {"bisection_per_gpu_Bps", (fabric.bisection() / fabric.gpus()).si()},
                         {"oversubscription", levels},
                         {"prices", prices_json(priced_parts(view))},
                         {"path", path_json(view)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string node_json(const topology::NodeDescription& node) {
  const auto rate = [](const std::optional<BytesPerSecond>& value) {
    return value ? Json(value->si()) : Json(nullptr);
  };
  Json tree = Json::array();
  for (const spec::PcieBranch& branch : node.pcie_tree)
    tree.push_back({{"parent", branch.parent}, {"children", branch.children}});
  const Json document = {
      {"schema", "scapesim.node/1"},
      {"version", version()},
      {"gpus_per_node", node.gpus},
      {"nics_per_node", node.nics},
      {"nic_bandwidth_Bps", rate(node.nic_bandwidth)},
      {"nic_affinity", node.nic_affinity},
      {"node_fabric", scapesim::name_of(node.fabric)},
      {"node_link_bandwidth_Bps", rate(node.node_link_bandwidth)},
      {"pcie_tree", tree},
      {"host_link", node.host_link ? Json(scapesim::name_of(node.host_link->kind)) : Json(nullptr)},
      {"host_link_bandwidth_Bps",
       node.host_link ? Json(node.host_link->bandwidth.si()) : Json(nullptr)},
      {"notes", node.notes},
      {"unknown", node.unknown}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string topology_dot(const TopologyView& view) {
  const topology::Graph& graph = view.fabric.graph();
  std::string out = "graph fabric {\n  node [shape=box, fontsize=10];\n  edge [fontsize=8];\n";
  for (const auto vertex : boost::make_iterator_range(vertices(graph)))
    out += fmt::format("  v{} [label=\"{}\"];\n", vertex, name_of(graph[vertex]));
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const topology::LinkId id = graph[edge].id;
    if (id.value % 2 != 0) continue;  // the way back of a cable
    out += fmt::format("  v{} -- v{} [label=\"{}\"];\n", source(edge, graph), target(edge, graph),
                       capacity_text(view.fabric.link(id).capacity));
  }
  return out + "}\n";
}

}  // namespace scapesim::reports
