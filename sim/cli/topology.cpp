// SPDX-License-Identifier: Apache-2.0
// scapesim topology show: a cluster's network in numbers, as a route and as a picture.
#include "reports/topology.hpp"

#include <charconv>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/scenario/load.hpp"

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
  FormatOptions format;
};

constexpr std::size_t kMostVertices = 20'000;  // of a picture; Graphviz takes hours above

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

File picture(const Options& options, const reports::TopologyView& view) {
  const std::size_t vertices = num_vertices(view.fabric.graph());
  if (vertices > kMostVertices)
    refuse("--dot",
           fmt::format("{} vertices are more than a picture of {} holds", vertices, kMostVertices),
           "show a part of the cluster with --gpus");
  return {options.dot, reports::topology_dot(view)};
}

Output topology(const Options& options) {
  constexpr std::array<std::string_view, 1> kActions = {"show"};
  if (options.action != kActions[0])
    refuse("ACTION", fmt::format("there is no action \"{}\"", options.action),
           did_you_mean(options.action, kActions));
  const spec::Cluster cluster = cluster_of(options);
  const int nodes = (cluster.gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  const topology::Fabric fabric = topology::build_fabric(cluster, nodes);
  reports::TopologyView view{cluster, fabric};
  if (!options.path.empty()) view.path = parse_path(options.path, fabric);
  Output output;
  if (!options.dot.empty()) output.files.push_back(picture(options, view));
  output.text = options.format.json ? reports::topology_json(view) : reports::topology_text(view);
  return output;
}

}  // namespace

Action declare_topology(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("ACTION", options->action, "show")->required();
  app.add_option("CLUSTER", options->cluster,
                 "Cluster preset (scapesim list clusters) or file, e.g. vista")
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
  app.add_option("--set", options->set, "Override a key of the cluster, e.g. --set cluster.taper=2")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_json(app, options->format);
  app.footer("Example: scapesim topology show vista --gpus 128 --path 0,127");
  return [options] { return topology(*options); };
}

}  // namespace scapesim::cli
