// SPDX-License-Identifier: Apache-2.0
// scapesim collective: one collective alone on a cluster, over sizes.
#include "sim/study/collective.hpp"

#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <vector>

#include "reports/json.hpp"
#include "reports/table.hpp"
#include "reports/text.hpp"
#include "sim/base/error.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/predict/used_keys.hpp"
#include "sim/scenario/load.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  std::string kind;
  std::string cluster;
  std::vector<std::string> set;
  std::string gpus;
  std::string sizes = "8B:8GiB:2";
  std::string profile;
  std::string algorithm = "auto";
  std::string protocol = "auto";
  std::string fidelity = "fluid";
  std::vector<std::string> against;
  std::string result;
  FormatOptions format;
};

constexpr std::size_t kMostSizes = 10'000;
constexpr double kLargestSize = 0x1p60;  // 1 EiB
constexpr int kMostChunkRanks = 256;     // seconds to minutes of time
constexpr int kMostFlowRanks = 1024;
constexpr int kMostExchangeRanks = 64;  // of all to all: 4,032 messages at once
constexpr double kRounding = 1e-12;     // of decimal units: 1.1GB is a whole number of bytes

Bytes parse_size(const std::string& text) {
  const Parsed<Bytes> parsed = parse_bytes(text);
  if (const auto* problem = std::get_if<UnitProblem>(&parsed))
    refuse("--size", problem->what, problem->hint);
  const double bytes = std::get<Bytes>(parsed).si();
  if (bytes < 1) refuse("--size", fmt::format("\"{}\" is below 1 byte", text), "");
  if (bytes > kLargestSize) refuse("--size", fmt::format("\"{}\" is above 1 EiB", text), "");
  if (std::abs(bytes - std::round(bytes)) > kRounding * bytes)
    refuse("--size", fmt::format("\"{}\" is no whole number of bytes", text), "");
  return Bytes(std::round(bytes));
}

double parse_factor(const std::string& text) {
  char* end = nullptr;
  const double factor = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(factor > 1) || factor > 1e9)
    refuse("--size", fmt::format("\"{}\" is not a factor above 1", text), "for example 8B:8GiB:2");
  return factor;
}

/// "1GiB", or FIRST:LAST:FACTOR with both ends, in whole bytes.
std::vector<Bytes> parse_sizes(const std::string& text) {
  const std::size_t first = text.find(':');
  if (first == std::string::npos) return {parse_size(text)};
  const std::size_t second = text.find(':', first + 1);
  const Bytes begin = parse_size(text.substr(0, first));
  const Bytes end = parse_size(text.substr(first + 1, second - first - 1));
  const double factor = second == std::string::npos ? 2 : parse_factor(text.substr(second + 1));
  if (begin > end) refuse("--size", fmt::format("\"{}\" ends before it begins", text), "");
  std::vector<Bytes> sizes;
  for (Bytes exact = begin; exact <= end; exact *= factor) {
    const Bytes size(std::floor(exact.si()));
    if (sizes.empty() || size > sizes.back()) sizes.push_back(size);
    if (sizes.size() > kMostSizes)
      refuse("--size", fmt::format("more than {} sizes", kMostSizes), "take a larger factor");
  }
  return sizes;
}

graph::CollectiveKind parse_kind(const std::string& text) {
  if (const auto kind = find_named<graph::CollectiveKind>(text)) return *kind;
  refuse("KIND", fmt::format("\"{}\" is not a collective", text),
         did_you_mean(text, all_names<graph::CollectiveKind>()));
}

spec::Cluster cluster_of(const Options& options) {
  spec::Cluster cluster = scenario::load_cluster(options.cluster, options.set);
  const std::vector<int> counts = parse_counts(options.gpus, "--gpus");
  if (counts.size() != 1) refuse("--gpus", "one count is expected", "for example 64");
  cluster.gpus = counts.front();
  const int most = cluster.nodes * cluster.gpus_per_node;
  if (cluster.gpus > most)
    refuse("--gpus", fmt::format("{} has {} GPUs, not {}", cluster.name, most, cluster.gpus), "");
  return cluster;
}

/// A name of E, or nothing for "auto".
template <class E>
std::optional<E> parse_choice(const std::string& text, const std::string& option) {
  if (text == "auto") return std::nullopt;
  if (const auto value = find_named<E>(text)) return value;
  std::vector<std::string_view> known = all_names<E>();
  known.push_back("auto");
  refuse(option, fmt::format("\"{}\" is not known", text), did_you_mean(text, known));
}

Fidelity parse_fidelity(const std::string& text, int gpus) {
  const auto fidelity = find_named<Fidelity>(text);
  if (!fidelity)
    refuse("--fidelity", fmt::format("\"{}\" is not known", text),
           did_you_mean(text, all_names<Fidelity>()));
  const int most = *fidelity == Fidelity::chunk  ? kMostChunkRanks
                   : *fidelity == Fidelity::flow ? kMostFlowRanks
                                                 : gpus;
  if (gpus > most)
    refuse("--fidelity", fmt::format("{} simulates {} GPUs at most, not {}", text, most, gpus),
           "fluid has no such limit");
  return *fidelity;
}

/// Measured calls beside their predictions.
std::string against_text(const std::vector<study::MeasuredCollective>& rows) {
  if (rows.empty()) return "";
  std::vector<std::vector<std::string>> cells;
  for (const study::MeasuredCollective& row : rows)
    cells.push_back({fmt::format("{:.0f}", row.size.si()),
                     fmt::format("{:.2f}", row.time.si() * 1e6),
                     fmt::format("{:.2f}", row.predicted.si() * 1e6),
                     fmt::format("{:.2f}", row.busbw.si() / 1e9),
                     fmt::format("{:.2f}", row.predicted_busbw.si() / 1e9),
                     fmt::format("{:+.1f} %", 100 * (row.predicted / row.time - 1))});
  return "\n" + reports::table({{"# size (B)"},
                                {"measured (us)"},
                                {"predicted (us)"},
                                {"busbw (GB/s)"},
                                {"predicted (GB/s)"},
                                {"error"}},
                               cells);
}

Output collective(const Options& options) {
  const graph::CollectiveKind kind = parse_kind(options.kind);
  const std::vector<Bytes> sizes = parse_sizes(options.sizes);
  const spec::Cluster cluster = cluster_of(options);
  std::optional<cost::Profile> profile;
  if (!options.profile.empty() && options.profile != "none")
    profile = cost::load_profile(options.profile, ".");
  const CollectiveOptions how{
      .algorithm = parse_choice<graph::Algorithm>(options.algorithm, "--algorithm"),
      .protocol = parse_choice<graph::Protocol>(options.protocol, "--protocol"),
      .fidelity = parse_fidelity(options.fidelity, cluster.gpus)};
  if (how.fidelity == Fidelity::flow && kind == graph::CollectiveKind::all_to_all &&
      cluster.gpus > kMostExchangeRanks)
    refuse("--fidelity",
           fmt::format("flow simulates {} GPUs of an all-to-all at most, not {}: it sends every "
                       "pair's message by itself",
                       kMostExchangeRanks, cluster.gpus),
           "fluid has no such limit");
  if (how.fidelity == Fidelity::chunk && kind == graph::CollectiveKind::broadcast)
    refuse("--fidelity", "a broadcast has no chunk-level simulation", "take fluid or flow");
  check_output("--result", options.result, options.against);
  const cost::Profile* known = profile ? &*profile : nullptr;
  const study::CollectiveTable table = study::collective_table(kind, sizes, cluster, known, how);
  const study::CollectiveStudy study{
      .kind = kind,
      .cluster = cluster.name,
      .gpus = cluster.gpus,
      .calibration = profile ? profile->id : "",
      .weakest_provenance =
          profile ? std::string(name_of(weakest(*profile, keys_named(*profile, "network.*")))) : "",
      .table = table,
      .measured = study::measured_collectives(options.against, kind, cluster, known, how)};
  const std::string heading =
      fmt::format("{} on {} GPUs of {}, {}", name_of(kind), cluster.gpus, cluster.name,
                  profile ? "calibration " + profile->id : "raw links");
  Output output;
  if (!options.result.empty())
    output.files.push_back({options.result, reports::collective_result_json(study)});
  if (options.format.json) {
    output.text = reports::collective_json(table.rows, table.warnings);
    return output;
  }
  output.text = reports::collective_text(heading, table.rows) + against_text(study.measured);
  output.notes = reports::warning_notes(table.warnings);
  return output;
}

}  // namespace

Action declare_collective(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("KIND", options->kind,
                 "all-reduce, reduce-scatter, all-gather, broadcast, all-to-all or send-recv")
      ->required();
  app.add_option("--cluster", options->cluster,
                 "Cluster preset (scapesim list clusters) or file, e.g. --cluster vista")
      ->type_name("PRESET")
      ->required();
  app.add_option("--gpus", options->gpus, "Number of GPUs that take part, e.g. --gpus 64")
      ->type_name("N")
      ->required();
  app.add_option("--size", options->sizes,
                 "Bytes as nccl-tests counts them: one size, or FIRST:LAST:FACTOR "
                 "(default: 8B:8GiB:2), e.g. --size 1GiB")
      ->type_name("SIZES");
  app.add_option("--profile", options->profile,
                 "Calibration of the transport (scapesim list calibrations) or file "
                 "(default: none, the raw links and the fabric's latency)")
      ->type_name("PROFILE");
  app.add_option("--algorithm", options->algorithm,
                 "ring, tree, nvls, nvls-tree, sharp, hierarchical, halving-doubling, pairwise or "
                 "pat (default: auto, the fastest that the profile knows)")
      ->type_name("NAME");
  app.add_option("--protocol", options->protocol,
                 "LL, LL128 or Simple (default: auto, the fastest that the profile knows)")
      ->type_name("NAME");
  app.add_option("--fidelity", options->fidelity,
                 "fluid: one rate per phase; flow: one SimGrid communication per transfer (1,024 "
                 "GPUs at most, 64 for an all-to-all); chunk: one per chunk (256) (default: fluid)")
      ->type_name("LEVEL");
  app.add_option("--set", options->set, "Override a key of the cluster, e.g. --set cluster.taper=2")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--against", options->against,
                 "Logs with timed calls of that kind on as many GPUs (nccl-tests, CSV ...), beside "
                 "their predictions")
      ->allow_extra_args(false)
      ->type_name("LOG");
  add_file(app, "--result", options->result,
           "Write the table for `scapesim report`, with the measured calls of --against")
      ->type_name("FILE");
  add_json(app, options->format);
  app.footer("Example: scapesim collective all-reduce --cluster flat-50GBps --gpus 64 --size 1GiB");
  return [options] { return collective(*options); };
}

}  // namespace scapesim::cli
