// SPDX-License-Identifier: Apache-2.0
// scapesim sweep: one scenario over the points of some axes, into a folder.
#include "reports/sweep.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/progress.hpp"
#include "sim/scenario/study_file.hpp"
#include "sim/study/mpi_job.hpp"
#include "sim/study/sweep.hpp"
#include "sim/study/sweep_folder.hpp"
#include "sim/study/workers.hpp"

namespace scapesim::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string file;
  std::vector<std::string> set;
  std::string series;
  std::vector<std::string> axes;
  bool zip = false;
  std::string filter;
  std::string interval;
  std::string folder;
  int jobs = 0;
  bool resume = false;
  std::string shard;
  FormatOptions format;
};

volatile std::sig_atomic_t stop_signal = 0;

/// While it lives, SIGINT, SIGTERM and SIGHUP are asked for, and a file size limit is an error of
/// the write that meets it.
class Signals {
 public:
  Signals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
      std::signal(number, [](int received) { stop_signal = received; });
    std::signal(SIGXFSZ, SIG_IGN);
  }
  ~Signals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXFSZ}) std::signal(number, SIG_DFL);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
};

std::vector<scenario::StudyKey> study_keys() {
  using enum scenario::StudyKey::Type;
  return {{"scenario", text}, {"set", texts},   {"series", text},  {"axes", texts},
          {"zip", flag},      {"filter", text}, {"interval", text}};
}

int draws_of(const std::string& interval, const std::string& where) {
  if (interval == "on") return PredictOptions{}.interval_draws;
  if (!interval.empty() && interval != "off")
    refuse(where, fmt::format("\"{}\" is neither on nor off", interval), "");
  return 0;
}

study::SweepRequest request_of(const scenario::StudyFile& study) {
  if (study.text("scenario").empty())
    throw InputError(Problem{
        {.file = study.file.string()}, "study.scenario", "missing", "the path of a scenario file"});
  return {.scenario = study.path("scenario").lexically_normal(),
          .set = study.texts("set"),
          .series = study.text("series"),
          .axes = study.texts("axes"),
          .axes_origin = study.file.string() + ": study.axes",
          .combine = study.flag("zip") ? study::Combine::zipped : study::Combine::cartesian,
          .filter = study.text("filter"),
          .filter_origin = study.file.string() + ": study.filter",
          .interval_draws = draws_of(study.text("interval"), "study.interval")};
}

/// From the command line, or from a study file, which says all by itself.
study::SweepRequest request_of(const Options& options) {
  const std::vector<scenario::StudyKey> keys = study_keys();
  if (const auto study = scenario::read_study(options.file, "sweep", keys)) {
    if (!options.set.empty() || !options.series.empty() || !options.axes.empty() || options.zip ||
        !options.filter.empty() || !options.interval.empty())
      refuse(
          "",
          fmt::format("{} is a study: it says its axes, filter and overrides itself", options.file),
          "edit it, or give a scenario");
    return request_of(*study);
  }
  return {.scenario = options.file,
          .set = options.set,
          .series = options.series,
          .axes = options.axes,
          .combine = options.zip ? study::Combine::zipped : study::Combine::cartesian,
          .filter = options.filter,
          .interval_draws = draws_of(options.interval, "--interval")};
}

std::string toml_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::string list = "[\n";
  for (const std::string& text : texts) list += fmt::format("  {},\n", toml_text(text));
  return list + "]";
}

/// The request as a study file of the folder that it is written into.
std::string study_file(const study::SweepRequest& request, const fs::path& folder) {
  std::error_code failure;
  fs::path scenario = fs::relative(request.scenario, folder, failure);
  if (failure || scenario.empty()) scenario = fs::absolute(request.scenario);
  std::string out = fmt::format(
      "# What is swept here: scapesim sweep {} -o FOLDER repeats it.\n[study]\nkind = \"sweep\"\n"
      "scenario = {}\n",
      study::kStudyName, toml_text(scenario.string()));
  if (!request.set.empty()) out += fmt::format("set = {}\n", toml_list(request.set));
  if (!request.series.empty()) out += fmt::format("series = {}\n", toml_text(request.series));
  out += fmt::format("axes = {}\n", toml_list(request.axes));
  if (request.combine == study::Combine::zipped) out += "zip = true\n";
  if (!request.filter.empty()) out += fmt::format("filter = {}\n", toml_text(request.filter));
  if (request.interval_draws > 0) out += "interval = \"on\"\n";
  return out;
}

std::string how_to_go_on(const Options& options) {
  const std::string shard = options.shard.empty() ? "" : " --shard " + options.shard;
  return fmt::format("go on with: scapesim sweep {} -o {}{} --resume",
                     (fs::path(options.folder) / study::kStudyName).string(), options.folder,
                     shard);
}

Output stopped(const Options& options, std::uint64_t finished, std::uint64_t all) {
  constexpr int kSignalBase = 128;  // as a shell reports it
  return {.notes = {fmt::format("stopped; {} of {} points are kept", finished, all),
                    how_to_go_on(options)},
          .code = kSignalBase + (stop_signal != 0 ? stop_signal : SIGTERM)};
}

/// Works on what is missing. False when it was told to stop.
bool work(study::Sweep& sweep, study::SweepFolder& folder, int jobs, std::uint64_t& finished) {
  constexpr std::chrono::seconds kSyncOften(1);
  const std::vector<std::uint64_t> missing = folder.missing();
  Progress progress(folder.finished(), folder.finished() + missing.size(), "points");
  auto synced = Clock::now();
  finished = folder.finished();
  const bool all = study::work_on(
      missing,
      [&](std::uint64_t number) {
        const auto point = sweep.point(number);
        return point ? reports::sweep_line(*point) : std::string();
      },
      [&](std::uint64_t number, const std::string& line) {
        folder.append(number, line);
        progress.finished_one();
        ++finished;
        if (Clock::now() - synced > kSyncOften) {
          folder.sync();
          synced = Clock::now();
        }
      },
      {.jobs = jobs,
       .stop =
           [&] {
             progress.show();
             return stop_signal != 0;
           },
       .begin = [&] { folder.close(); }});
  folder.sync();
  return all;
}

study::Shard shard_of(const Options& options) {
  return options.shard.empty() ? study::Shard{} : study::parse_shard(options.shard, "--shard");
}

Output report(const Options& options, const std::string& name, const fs::path& folder) {
  reports::SweepSummary summary;
  study::write_results(folder, study::FinishedPoints({folder}), reports::sweep_csv(summary));
  Output output;
  output.text = options.format.json
                    ? reports::sweep_json(name, summary)
                    : reports::sweep_text(name, summary) +
                          fmt::format("  written        {}, {}\n",
                                      (folder / study::kJsonlName).string(), study::kCsvName);
  // The points that a part holds are chance: refused ones are no verdict on the sweep.
  const bool part = shard_of(options).of > 1;
  if (summary.done == 0 && summary.infeasible + (part ? 0 : summary.refused) > 0)
    output.code = kInfeasible;
  return output;
}

study::SweepFolder open_folder(const Options& options, const study::SweepRequest& request,
                               const study::Sweep& sweep) {
  const fs::path path = options.folder;
  study::SweepFolder folder = study::SweepFolder::open(
      path, sweep.identity(), options.resume ? study::Begin::resumed : study::Begin::afresh,
      shard_of(options), sweep.size());
  if (!options.resume) write_file(path / study::kStudyName, study_file(request, path));
  return folder;
}

void refuse_nothing_left(const study::SweepRequest& request, study::Sweep& sweep) {
  if (!sweep.leaves_points())
    refuse(request.filter_origin, fmt::format("the filter left 0 of {} points", sweep.size()), "");
}

std::string name_of(const Options& options) { return fs::path(options.file).stem().string(); }

Output sweep_here(const Options& options) {
  const study::SweepRequest request = request_of(options);
  study::Sweep sweep(request);
  refuse_nothing_left(request, sweep);
  const Signals signals;  // from here on there is something to keep
  study::SweepFolder folder = open_folder(options, request, sweep);
  const int jobs = options.jobs > 0 ? options.jobs : study::usable_processors();
  std::uint64_t finished = 0;
  try {
    if (!work(sweep, folder, jobs, finished))
      return stopped(options, finished, folder.finished() + folder.missing().size());
  } catch (const study::WorkerDied& death) {
    return {.notes = {fmt::format("scapesim: {}; the others are kept", death.what()),
                      how_to_go_on(options)},
            .code = kOurFault};
  }
  return report(options, name_of(options), options.folder);
}

/// One rank's share of the points, into its journal; the numbers end for all when it throws.
void work_on_rank(study::MpiJob& job, study::Sweep& sweep, study::SweepFolder& folder,
                  const std::vector<std::uint64_t>& missing, std::uint64_t before) {
  constexpr std::chrono::seconds kSyncOften(1);
  Progress progress(before, before + missing.size(), "points");
  auto synced = Clock::now();
  try {
    for (std::uint64_t i = job.next(); i < missing.size() && stop_signal == 0; i = job.next()) {
      const auto point = sweep.point(missing[i]);
      folder.append(missing[i], point ? reports::sweep_line(*point) : std::string());
      if (Clock::now() - synced > kSyncOften) {
        folder.sync();
        synced = Clock::now();
      }
      progress.finished(i + 1);
      if (job.rank() == 0) progress.show();
    }
    folder.sync();
  } catch (...) {
    job.end_numbers();
    throw;
  }
}

/// Every rank of an mpirun is a worker; rank 0 also keeps the folder and speaks.
Output sweep_with_mpi(const Options& options) {
  const Signals signals;
  study::MpiJob job;
  std::optional<study::Sweep> sweep;
  std::optional<study::SweepFolder> folder;
  std::vector<std::uint64_t> missing;
  const Output told_elsewhere{.code = kBadInput};
  const auto read = [&] {
    if (options.jobs > 0)
      refuse("--jobs", "has no meaning with mpirun", "the ranks are the workers");
    const study::SweepRequest request = request_of(options);
    sweep.emplace(request);
    if (job.rank() != 0) return;
    refuse_nothing_left(request, *sweep);
    folder.emplace(open_folder(options, request, *sweep));
    missing = folder->missing();
  };
  if (!job.together(read)) return told_elsewhere;
  const std::uint64_t before = folder ? folder->finished() : 0;
  missing = job.agreed(std::move(missing));
  const auto compute = [&] {
    if (job.rank() != 0)
      folder.emplace(study::SweepFolder::beside(options.folder, sweep->identity(),
                                                shard_of(options), job.rank(), sweep->size()));
    work_on_rank(job, *sweep, *folder, missing, before);
  };
  if (!job.together(compute)) return told_elsewhere;
  folder->close();
  Output output;
  const auto finish = [&] {
    if (job.rank() != 0) return;
    const std::uint64_t finished = study::FinishedPoints({options.folder}).count();
    output = finished < before + missing.size()
                 ? stopped(options, finished, before + missing.size())
                 : report(options, name_of(options), options.folder);
  };
  return job.together(finish) ? output : told_elsewhere;
}

Output sweep(const Options& options) {
  return study::started_by_mpi() ? sweep_with_mpi(options) : sweep_here(options);
}

struct MergeOptions {
  std::vector<std::string> folders;
  std::string target;
  FormatOptions format;
};

/// The study of the parts, which is that of the whole: its paths seen from the new folder.
void write_study_of_parts(const MergeOptions& options) {
  const fs::path part = fs::path(options.folders.front()) / study::kStudyName;
  std::error_code ignored;
  if (!fs::exists(part, ignored)) return;
  const auto study = scenario::read_study(part, "sweep", study_keys());
  if (study)
    write_file(fs::path(options.target) / study::kStudyName,
               study_file(request_of(*study), options.target));
}

Output merge(const MergeOptions& options) {
  const Signals signals;
  reports::SweepSummary summary;
  study::merge({options.folders.begin(), options.folders.end()}, options.target,
               reports::sweep_csv(summary));
  write_study_of_parts(options);
  const std::string name = fs::path(options.target).filename().string();
  return {.text = options.format.json ? reports::sweep_json(name, summary)
                                      : reports::sweep_text(name, summary)};
}

}  // namespace

Action declare_sweep(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_option("SCENARIO", options->file,
                 "Scenario file, or a study file: a [study] table with kind = \"sweep\", scenario, "
                 "axes, and set, series, zip, filter, interval as needed")
      ->required();
  app.add_option(
         "--axis", options->axes,
         "A key and its values, as often as needed: KEY=V1,V2,..., KEY=FIRST:LAST:STEP, "
         "KEY=FIRST:LAST:*FACTOR, e.g. --axis parallelism.tp=1,2,4 --axis "
         "cluster.gpus=64:1024:*2 --axis cluster.nic_bandwidth=100Gbps:400Gbps:100Gbps. The "
         "first axis is the outermost")
      ->type_name("KEY=VALUES")
      ->allow_extra_args(false);
  app.add_flag("--zip", options->zip,
               "Takes the axes side by side, first values together, then second ones (default: "
               "all combinations)");
  app.add_option("--filter", options->filter,
                 "Only points for which this holds, e.g. --filter 'tp * pp * dp == gpus and "
                 "micro_batch <= 8 and nic_bandwidth >= 200Gbps and method == \"scape\"'; a key by "
                 "its last word or in full, and dp, micro_batches, series")
      ->type_name("CONDITION");
  app.add_option("--set", options->set, "Override a key of the file, as often as needed")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--series", options->series,
                 "Only this series of a scenario with variants (default: all)")
      ->type_name("NAME");
  app.add_option("--interval", options->interval,
                 "90 % interval of every step time: on or off (default: off, 17 times as fast)")
      ->type_name("on|off");
  add_file(app, "-o,--output", options->folder,
           "Folder of the sweep: study.toml, journal, and in the end results.jsonl and results.csv")
      ->type_name("DIR")
      ->required();
  app.add_option("--jobs", options->jobs, "Processes (default: as many as processors)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_flag("--resume", options->resume,
               "Goes on with the sweep in the folder, whatever ended it");
  app.add_option("--shard", options->shard,
                 "Only every N-th point, from the I-th, e.g. --shard 2/8; each part into its own "
                 "folder, then scapesim merge")
      ->type_name("I/N");
  add_json(app, options->format);
  app.footer(
      "Example: scapesim sweep scenarios/vista-llama-1.8b.toml --series AdamS --axis "
      "cluster.gpus=4:64:*2 --axis training.micro_batch=1,2,4,8 -o out/sweep");
  return [options] { return sweep(*options); };
}

Action declare_merge(CLI::App& app) {
  const auto options = std::make_shared<MergeOptions>();
  app.add_option("DIR", options->folders, "Folders of the parts of one sweep")->required();
  add_file(app, "-o,--output", options->target, "Folder for the whole sweep")
      ->type_name("DIR")
      ->required();
  add_json(app, options->format);
  app.footer("Example: scapesim merge out/part-1 out/part-2 -o out/whole");
  return [options] { return merge(*options); };
}

}  // namespace scapesim::cli
