// SPDX-License-Identifier: Apache-2.0
// A fabric as a drawing: a row per kind of part, switches on top; cables between parts of one row
// are arcs.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "reports/topology.hpp"
#include "sim/base/unit_text.hpp"
#include "topologies/summary.hpp"

namespace scapesim::reports {
namespace {

using topology::VertexKind;

constexpr double kBoxWidth = 40, kBoxHeight = 20, kPitch = 46, kRowPitch = 90, kMargin = 30;

constexpr std::array kRows = {VertexKind::core_switch, VertexKind::spine_switch,
                              VertexKind::leaf_switch, VertexKind::router,
                              VertexKind::nic,         VertexKind::host_memory,
                              VertexKind::socket,      VertexKind::pcie_switch,
                              VertexKind::gpu,         VertexKind::node_switch};

std::string_view colour(VertexKind kind) {
  switch (kind) {
    case VertexKind::gpu:
      return "#b7e1cd";
    case VertexKind::nic:
      return "#fce8b2";
    case VertexKind::node_switch:
    case VertexKind::pcie_switch:
    case VertexKind::socket:
    case VertexKind::host_memory:
      return "#e1d5ec";
    case VertexKind::leaf_switch:
    case VertexKind::spine_switch:
    case VertexKind::core_switch:
    case VertexKind::router:
      return "#c9daf8";
  }
  return "#ffffff";
}

struct Point {
  double x = 0;
  double y = 0;
};

struct Layout {
  std::vector<Point> centres;  ///< by vertex
  double width = 0;
  double height = 0;
};

Layout layout_of(const topology::Graph& graph) {
  Layout layout;
  layout.centres.resize(num_vertices(graph));
  std::vector<std::vector<std::size_t>> rows;
  for (const VertexKind kind : kRows) {
    std::vector<std::size_t> row;
    for (const auto vertex : boost::make_iterator_range(vertices(graph)))
      if (graph[vertex].kind == kind) row.push_back(vertex);
    if (!row.empty()) rows.push_back(std::move(row));
  }
  std::size_t widest = 1;
  for (const auto& row : rows) widest = std::max(widest, row.size());
  layout.width = 2 * kMargin + kPitch * static_cast<double>(widest);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double share = (layout.width - 2 * kMargin) / static_cast<double>(rows[i].size());
    for (std::size_t j = 0; j < rows[i].size(); ++j)
      layout.centres[rows[i][j]] = {kMargin + share * (static_cast<double>(j) + 0.5),
                                    kMargin + kRowPitch * (static_cast<double>(i) + 0.5)};
  }
  layout.height = 2 * kMargin + kRowPitch * static_cast<double>(rows.size());
  return layout;
}

std::string cable(Point from, Point to, std::string_view title) {
  constexpr double kThin = 0.8;
  const double rise = from.y == to.y ? 0.35 * std::abs(from.x - to.x) : 0;
  return fmt::format(
      "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"#888\" "
      "stroke-width=\"{}\"><title>{}</title></path>\n",
      from.x, from.y, (from.x + to.x) / 2, (from.y + to.y) / 2 - std::min(rise, kRowPitch), to.x,
      to.y, kThin, title);
}

std::string box(Point at, const topology::Vertex& vertex) {
  return fmt::format(
      "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"3\" "
      "fill=\"{}\" stroke=\"#444\"/><text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"8\" "
      "text-anchor=\"middle\">{}</text></g>\n",
      name_of(vertex), at.x - kBoxWidth / 2, at.y - kBoxHeight / 2, kBoxWidth, kBoxHeight,
      colour(vertex.kind), at.x, at.y + 3, vertex.ordinal);
}

}  // namespace

std::string topology_svg(const TopologyView& view) {
  const topology::Graph& graph = view.fabric.graph();
  const Layout layout = layout_of(graph);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n",
      layout.width, layout.height);
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const topology::LinkId id = graph[edge].id;
    if (id.value % 2 != 0) continue;  // the way back of a cable
    const topology::Link& link = view.fabric.link(id);
    const std::string rate =
        std::isfinite(link.capacity.si()) ? text_of(link.capacity) : "not limited";
    out += cable(layout.centres[source(edge, graph)], layout.centres[target(edge, graph)],
                 fmt::format("{}, {}", name_of(link.kind), rate));
  }
  std::array<bool, kRows.size()> named{};
  for (const auto vertex : boost::make_iterator_range(vertices(graph))) {
    const auto row =
        static_cast<std::size_t>(std::ranges::find(kRows, graph[vertex].kind) - kRows.begin());
    const Point at = layout.centres[vertex];
    if (!named[row])
      out += fmt::format("<text x=\"4\" y=\"{:.1f}\" font-size=\"10\">{}</text>\n", at.y - 14,
                         name_of(graph[vertex].kind));
    named[row] = true;
    out += box(at, graph[vertex]);
  }
  return out + "</svg>\n";
}

}  // namespace scapesim::reports
