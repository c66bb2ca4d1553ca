// SPDX-License-Identifier: Apache-2.0
#include "topologies/network_graph.hpp"

#include <array>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <sstream>

#include "sim/base/csv.hpp"
#include "sim/base/unit_text.hpp"
#include "topologies/xml_nesting.hpp"

namespace scapesim::topology {

namespace {

using Tree = boost::property_tree::ptree;

/// A rate as written; empty stands for none, which only a node's cable may have.
BytesPerSecond capacity_of(const std::string& text, const Place& place, Problems& problems) {
  if (text.empty()) return BytesPerSecond(0);
  const Parsed<BytesPerSecond> parsed = parse_bytes_per_second(text);
  if (const auto* rate = std::get_if<BytesPerSecond>(&parsed)) {
    if (rate->si() > 0) return *rate;
    problems.add(place, "bandwidth", fmt::format("\"{}\" is not above 0", text),
                 "leave the cable out");
  } else {
    const auto& fault = std::get<UnitProblem>(parsed);
    problems.add(place, "bandwidth", fault.what, fault.hint);
  }
  return BytesPerSecond(0);
}

int count_of(const std::string& text, const Place& place, Problems& problems) {
  constexpr int kMost = 100'000;
  if (text.empty()) return 1;
  int count = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failure == std::errc() && end == text.data() + text.size() && count >= 1 && count <= kMost)
    return count;
  problems.add(place, "count", fmt::format("\"{}\" is no number of cables", text),
               fmt::format("1 to {}", kMost));
  return 1;
}

/// Data of a GraphML element by the attr.name of its key.
std::string data_of(const Tree& element, const std::map<std::string, std::string>& names,
                    std::string_view wanted) {
  for (const auto& [tag, child] : element) {
    if (tag != "data") continue;
    const auto name = names.find(child.get("<xmlattr>.key", ""));
    if (name != names.end() && name->second == wanted) return child.data();
  }
  return {};
}

/// The elements of one kind of a graph.
std::vector<const Tree*> elements(const Tree& graph, std::string_view kind) {
  std::vector<const Tree*> list;
  for (const auto& [tag, child] : graph)
    if (tag == kind) list.push_back(&child);
  return list;
}

spec::NetworkGraph read_graphml(std::string_view text, const std::string& file,
                                Problems& problems) {
  spec::NetworkGraph network{.file = file, .edges = {}};
  const Place place{.file = file};
  if (xml_nesting(text) > kDeepestXml) {
    problems.add(place, "graph", "elements nested too deep for GraphML", "");
    return network;
  }
  Tree document;
  std::istringstream stream{std::string(text)};
  try {
    boost::property_tree::read_xml(stream, document);
  } catch (const boost::property_tree::xml_parser_error& failure) {
    problems.add({.file = file, .line = static_cast<int>(failure.line())}, "graph",
                 fmt::format("no XML: {}", failure.message()), "");
    return network;
  }
  const auto root = document.get_child_optional("graphml");
  const auto graph = document.get_child_optional("graphml.graph");
  if (!root || !graph) {
    problems.add(place, "graph", "no GraphML: it has no <graphml> with a <graph>", "");
    return network;
  }
  std::map<std::string, std::string> data_names, names;
  for (const Tree* key : elements(*root, "key")) {
    const auto attributes = key->get_child_optional("<xmlattr>");
    if (!attributes) continue;
    const auto name = attributes->find("attr.name");  // a dot would be a path
    if (name != attributes->not_found())
      data_names[key->get("<xmlattr>.id", "")] = name->second.data();
  }
  for (const Tree* node : elements(*graph, "node")) {
    const std::string id = node->get("<xmlattr>.id", "");
    const std::string name = data_of(*node, data_names, "name");
    names[id] = name.empty() ? id : name;
  }
  for (const Tree* edge : elements(*graph, "edge")) {
    const std::string from = edge->get("<xmlattr>.source", ""),
                      to = edge->get("<xmlattr>.target", "");
    if (!names.contains(from) || !names.contains(to)) {
      problems.add(place, "graph",
                   fmt::format("an edge from \"{}\" to \"{}\", which are not both nodes", from, to),
                   "");
      continue;
    }
    const int count = count_of(data_of(*edge, data_names, "count"), place, problems);
    network.edges.push_back(
        {names[from], names[to],
         count * capacity_of(data_of(*edge, data_names, "bandwidth"), place, problems)});
  }
  return network;
}

spec::NetworkGraph read_csv(std::string_view text, const std::string& file, Problems& problems) {
  constexpr std::array<std::string_view, 4> kColumns = {"from", "to", "bandwidth", "count"};
  spec::NetworkGraph network{.file = file, .edges = {}};
  try {
    const Csv csv = parse_csv(text, file, kColumns);
    for (const CsvRow& row : csv.rows) {
      const Place place = place_of(csv, row.cells[2]);
      const int count = count_of(row.cells[3].text, place_of(csv, row.cells[3]), problems);
      network.edges.push_back({row.cells[0].text, row.cells[1].text,
                               count * capacity_of(row.cells[2].text, place, problems)});
    }
  } catch (const InputError& failure) {
    for (const Problem& problem : failure.problems())
      problems.add(problem.place, problem.key, problem.what, problem.hint);
  }
  return network;
}

}  // namespace

spec::NetworkGraph read_network(std::string_view text, const std::string& file,
                                Problems& problems) {
  return file.ends_with(".graphml") || file.ends_with(".xml") ? read_graphml(text, file, problems)
                                                              : read_csv(text, file, problems);
}

std::set<std::uint32_t> NetworkParts::holders(int count) const {
  std::set<std::uint32_t> list;
  for (std::size_t node = 0; node < static_cast<std::size_t>(count); ++node)
    list.insert(nodes[node].begin(), nodes[node].end());
  return list;
}

NetworkParts network_parts(const spec::NetworkGraph& graph) {
  NetworkParts parts;
  std::map<std::string, std::uint32_t> numbers;
  const auto number = [&](const std::string& name) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    const auto [entry, is_new] = numbers.try_emplace(name, next);
    if (is_new) parts.switches.push_back(name);
    return entry->second;
  };
  for (const spec::GraphEdge& edge : graph.edges) {
    const auto from = spec::node_number(edge.from), to = spec::node_number(edge.to);
    if (!from && !to) {
      const std::uint32_t lower = number(edge.from), upper = number(edge.to);
      parts.cables.push_back({lower, upper, edge.capacity});
      continue;
    }
    const auto node = static_cast<std::size_t>(from ? *from : *to);
    if (parts.nodes.size() <= node) parts.nodes.resize(node + 1);
    parts.nodes[node].push_back(number(from ? edge.to : edge.from));
  }
  return parts;
}

}  // namespace scapesim::topology
