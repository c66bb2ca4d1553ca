// SPDX-License-Identifier: Apache-2.0
// scapesim list: the tables in code and the files on disk, one table each.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "reports/json.hpp"
#include "reports/text.hpp"
#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/plan/algorithms.hpp"
#include "sim/plan/schedule.hpp"
#include "sim/scenario/load.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/workload/workload.hpp"
#include "topologies/fabric.hpp"

namespace scapesim::cli {
namespace {

using reports::Listing;

Listing topologies() {
  Listing listing{.columns = {"name", "help"}, .rows = {}};
  for (const topology::Generator& row : topology::generators())
    listing.rows.push_back({std::string(row.name), std::string(row.help)});
  return listing;
}

Listing strategies() {
  Listing listing{.columns = {"name", "sharding", "help"}, .rows = {}};
  for (const strategy::Method& row : strategy::methods()) {
    std::vector<std::string_view> shardings;
    for (const spec::Sharding sharding : spec::rule_of(row.method).shardings)
      shardings.push_back(name_of(sharding));
    listing.rows.push_back({std::string(name_of(row.method)),
                            fmt::format("{}", fmt::join(shardings, ", ")), std::string(row.help)});
  }
  return listing;
}

Listing schedules() {
  Listing listing{.columns = {"name", "help"}, .rows = {}};
  for (const plan::ScheduleRow& row : plan::schedules())
    listing.rows.push_back({std::string(name_of(row.schedule)), std::string(row.help)});
  return listing;
}

std::string algorithms_for(graph::CollectiveKind kind) {
  std::string names;
  for (const plan::AlgorithmRow& row : plan::algorithms())
    if (std::ranges::find(row.kinds, kind) != row.kinds.end())
      names += (names.empty() ? "" : ", ") + std::string(name_of(row.algorithm));
  return names;
}

Listing collectives() {
  using enum graph::CollectiveKind;
  constexpr std::array<std::pair<graph::CollectiveKind, std::string_view>, 6> kRows = {{
      {all_reduce, "everyone gets the sum; size is the buffer of a rank"},
      {reduce_scatter, "everyone gets a part of the sum; size is the buffer before"},
      {all_gather, "everyone gets everyone's part; size is the buffer after"},
      {broadcast, "everyone gets the first rank's buffer; size is that buffer"},
      {all_to_all, "everyone sends everyone a part; size is the buffer of a rank"},
      {send_recv, "everyone sends its buffer to the next; size is that buffer"},
  }};
  Listing listing{.columns = {"name", "algorithms", "help"}, .rows = {}};
  for (const auto& [kind, help] : kRows)
    listing.rows.push_back({std::string(name_of(kind)), algorithms_for(kind), std::string(help)});
  return listing;
}

Listing presets(const std::vector<scenario::Preset>& list) {
  Listing listing{.columns = {"name", "help"}, .rows = {}};
  for (const scenario::Preset& row : list) listing.rows.push_back({row.name, row.help});
  return listing;
}

Listing models() {
  Listing listing{.columns = {"name", "parameters", "active", "help"}, .rows = {}};
  for (const scenario::Preset& row : scenario::model_presets()) {
    const scenario::ModelPreset preset = scenario::load_model(row.name);
    spec::Training training;
    training.micro_batch = 1;
    training.sequence = preset.sequence;
    const workload::Workload work = workload::workload_of(preset.model, training);
    listing.rows.push_back({row.name, std::to_string(work.parameters),
                            std::to_string(work.active_parameters), row.help});
  }
  return listing;
}

Listing clusters() { return presets(scenario::cluster_presets()); }
Listing scenarios() { return presets(scenario::shipped_scenarios()); }

Listing calibrations() {
  namespace fs = std::filesystem;
  Listing listing{.columns = {"name", "machine", "weakest_provenance", "note"}, .rows = {}};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_folder() / "calib/profiles"))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const cost::Profile profile = cost::load_profile(file.stem().string(), ".");
    listing.rows.push_back(
        {profile.id, profile.machine, std::string(name_of(cost::weakest(profile))), profile.note});
  }
  return listing;
}

/// The range, with the words that this version refuses apart.
std::string range_of(const scenario::KeyRecord& row) {
  if (row.refused.empty()) return row.range;
  std::string range = row.range;
  for (const std::string& word : row.refused) {
    const std::string with_comma = ", " + word;
    if (const std::size_t at = (range + ", ").find(with_comma + ", "); at != std::string::npos)
      range.erase(at, with_comma.size());
  }
  return fmt::format("{}; not in this version: {}", range, fmt::join(row.refused, ", "));
}

Listing keys() {
  Listing listing{.columns = {"key", "type", "range", "default", "help"}, .rows = {}};
  for (const scenario::KeyRecord& row : scenario::key_records())
    listing.rows.push_back(
        {row.section.empty() ? std::string(row.name) : fmt::format("{}.{}", row.section, row.name),
         std::string(row.type), range_of(row), row.default_text, std::string(row.help)});
  return listing;
}

struct Table {
  std::string_view name;
  Listing (*listing)();
};
constexpr Table kTables[] = {
    {"topologies", topologies},     {"strategies", strategies}, {"schedules", schedules},
    {"collectives", collectives},   {"models", models},         {"clusters", clusters},
    {"calibrations", calibrations}, {"scenarios", scenarios},   {"keys", keys}};

struct Options {
  std::string what;
  FormatOptions format;
};

Output list(const Options& options) {
  std::vector<std::string_view> names;
  for (const Table& table : kTables) {
    names.push_back(table.name);
    if (table.name != options.what) continue;
    const Listing listing = table.listing();
    Output output;
    output.text = options.format.json ? reports::listing_json(options.what, listing)
                                      : reports::listing_text(listing);
    return output;
  }
  refuse("WHAT", fmt::format("there is no table \"{}\"", options.what),
         did_you_mean(options.what, names));
}

}  // namespace

Action declare_list(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("WHAT", options->what,
                 "topologies, strategies, schedules, collectives, models, clusters, calibrations, "
                 "scenarios or keys")
      ->required();
  add_json(app, options->format);
  app.footer("Example: scapesim list keys");
  return [options] { return list(*options); };
}

}  // namespace scapesim::cli
