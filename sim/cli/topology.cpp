// SPDX-License-Identifier: Apache-2.0
// scapesim topology: a cluster's network in numbers, as a route and as a picture; and a node from
// what NCCL or nvidia-smi print of it.
#include "reports/topology.hpp"

#include <charconv>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/scenario/load.hpp"
#include "topologies/node_import.hpp"

namespace scapesim::cli {
namespace {

using topology::GpuId;

struct Options {
  std::string action;
  std::string cluster;
  std::vector<std::string> set;
  std::string gpus;
  std::string path;
  std::string dot;
  std::string svg;
  FormatOptions format;
};

constexpr std::size_t kMostVertices = 20'000;  // of a picture; Graphviz takes hours above
constexpr std::size_t kMostDrawn = 5'000;      // of a drawing, which is a row per kind of part

constexpr std::int64_t kMostGpus = 1'000'000;  // of a fabric: about 1 GB

/// The cluster with as many GPUs as are looked at: all without --gpus.
spec::Cluster cluster_of(const Options& options) {
  spec::Cluster cluster = scenario::load_cluster(options.cluster, options.set);
  if (options.gpus.empty()) {
    const std::int64_t all = std::int64_t{cluster.nodes} * cluster.gpus_per_node;
    if (all > kMostGpus)
      refuse("CLUSTER", fmt::format("{} GPUs, at most {} are shown", all, kMostGpus),
             "show a part with --gpus");
    cluster.gpus = static_cast<int>(all);
    return cluster;
  }
  const std::vector<int> counts = parse_counts(options.gpus, "--gpus");
  if (counts.size() != 1) refuse("--gpus", "one count is expected", "for example 64");
  cluster.gpus = counts.front();
  if (cluster.gpus > kMostGpus)
    refuse("--gpus", fmt::format("at most {} GPUs are shown", kMostGpus), "");
  for (const spec::Violation& violation : spec::violations(cluster))
    refuse("--gpus", violation.what, violation.hint);
  return cluster;
}

GpuId parse_gpu(std::string_view word, const topology::Fabric& fabric) {
  std::uint32_t gpu = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), gpu);
  if (failure != std::errc{} || end != word.data() + word.size())
    refuse("--path", fmt::format("\"{}\" is not the number of a GPU", word), "for example 0,7");
  if (gpu >= static_cast<std::uint32_t>(fabric.gpus()))
    refuse("--path", fmt::format("there is no GPU {}", gpu),
           fmt::format("0 to {}", fabric.gpus() - 1));
  return {gpu};
}

std::pair<GpuId, GpuId> parse_path(std::string_view text, const topology::Fabric& fabric) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos)
    refuse("--path", fmt::format("\"{}\" is not a pair of GPUs", text), "for example 0,7");
  return {parse_gpu(text.substr(0, comma), fabric), parse_gpu(text.substr(comma + 1), fabric)};
}

/// Refuses a drawing that nobody could look at.
void check_picture(std::string_view option, const topology::Fabric& fabric, std::size_t most) {
  const std::size_t vertices = num_vertices(fabric.graph());
  if (vertices > most)
    refuse(std::string(option),
           fmt::format("{} vertices are more than a picture of {} holds", vertices, most),
           "show a part of the cluster with --gpus");
}

Output import(const Options& options) {
  constexpr std::size_t kLargest = 10'000'000;
  const topology::NodeDescription node =
      topology::read_node(read_file(options.cluster, "node", kLargest), options.cluster);
  Output output;
  output.text =
      options.format.json ? reports::node_json(node) : topology::node_toml(node, options.cluster);
  return output;
}

Output show(const Options& options) {
  const spec::Cluster cluster = cluster_of(options);
  const int nodes = (cluster.gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  const topology::Fabric fabric = topology::build_fabric(cluster, nodes);
  reports::TopologyView view{cluster, fabric};
  if (!options.path.empty()) view.path = parse_path(options.path, fabric);
  Output output;
  if (!options.dot.empty()) {
    check_picture("--dot", fabric, kMostVertices);
    output.files.push_back({options.dot, reports::topology_dot(view)});
  }
  if (!options.svg.empty()) {
    check_picture("--svg", fabric, kMostDrawn);
    output.files.push_back({options.svg, reports::topology_svg(view)});
  }
  output.text = options.format.json ? reports::topology_json(view) : reports::topology_text(view);
  return output;
}

Output topology(const Options& options) {
  constexpr std::array<std::string_view, 2> kActions = {"show", "import"};
  if (options.action == kActions[0]) return show(options);
  if (options.action == kActions[1]) return import(options);
  refuse("ACTION", fmt::format("there is no action \"{}\"", options.action),
         did_you_mean(options.action, kActions));
}

}  // namespace

Action declare_topology(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("ACTION", options->action,
                 "show a cluster's network, or import a node's description")
      ->required();
  app.add_option(
         "CLUSTER", options->cluster,
         "show: cluster preset (scapesim list clusters) or file, e.g. vista; import: XML of "
         "NCCL_TOPO_DUMP_FILE, or the output of nvidia-smi topo -m")
      ->required();
  app.add_option("--gpus", options->gpus,
                 "Only the part that a job on so many GPUs uses, in whole nodes (default: all), "
                 "e.g. --gpus 64")
      ->type_name("N");
  app.add_option("--path", options->path,
                 "The links between two GPUs, numbered from 0, e.g. --path 0,7")
      ->type_name("A,B");
  app.add_option("--dot", options->dot,
                 "Write the graph for Graphviz (dot -Tsvg FILE), e.g. --dot vista.dot")
      ->type_name("FILE");
  app.add_option("--svg", options->svg, "Draw it, a row per kind of part, e.g. --svg vista.svg")
      ->type_name("FILE");
  app.add_option("--set", options->set, "Override a key of the cluster, e.g. --set cluster.taper=2")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_json(app, options->format);
  app.footer("Example: scapesim topology show vista --gpus 128 --path 0,127");
  return [options] { return topology(*options); };
}

}  // namespace scapesim::cli
