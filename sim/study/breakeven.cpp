// SPDX-License-Identifier: Apache-2.0
#include "sim/study/breakeven.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <mutex>

#include "sim/base/csv.hpp"
#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"
#include "sim/study/parallel.hpp"

namespace scapesim::study {

namespace {

using scenario::with_gpus;

constexpr int kNetworkSamples = 13;
constexpr int kGpuSamples = 9;
constexpr int kSearchedSteps = 4;    // drawn at each place
constexpr double kLevel = 1e-3;      // ratios that close to 1 are no difference
constexpr double kPrecision = 1e-3;  // relative, of a break-even network speed

/// Times by place: the baseline's are predicted once for all series, by the first thread that asks.
class Known {
 public:
  template <class Time>
  std::optional<double> at(double place, const Time& time) {
    std::unique_lock lock(mutex_);
    Entry& entry = entries_[place];
    lock.unlock();
    std::call_once(entry.once, [&] { entry.time = time(); });
    return entry.time;
  }

 private:
  struct Entry {
    std::once_flag once;
    std::optional<double> time;
  };
  std::mutex mutex_;
  std::map<double, Entry> entries_;
};

/// Jittered steps that a search draws at a place, where the scenario may ask for more.
Series searched(Series series) {
  int& steps = series.scenario.jitter.steps;
  steps = std::min(steps, kSearchedSteps);
  return series;
}

/// Time per token times tokens to the loss; none where it does not fit.
std::optional<double> time_to_loss(const Series& series, const PredictOptions& options) {
  const result::Outcome outcome = predict(series.scenario, series.profile, options).outcome;
  const auto* run = std::get_if<result::Run>(&outcome);
  if (run == nullptr) return std::nullopt;
  return series.scenario.strategy.tokens_to_loss / run->tokens_per_second.si();
}

/// [M345] What a NIC carries of a large collective: efficiency times line rate, or the transport's
/// cap.
BytesPerSecond carried(const Series& series) {
  const cost::Profile& profile = series.profile;
  const BytesPerSecond line =
      series.scenario.cluster.nic_bandwidth * profile.number("network.efficiency");
  if (!profile.has("network.transport_cap_Bps")) return line;
  return std::min(line, BytesPerSecond(profile.number("network.transport_cap_Bps")));
}

/// Level within a millionth is no gain.
bool pays(double ratio) { return ratio < 1 - 1e-6; }

/// Ratio at a place; none where one of both does not fit.
using At = std::function<std::optional<double>(double)>;

/// The place between two samples where the ratio passes 1, to a relative precision.
double bisected(const At& ratio, Ratio low, Ratio high) {
  while (high.at / low.at > 1 + kPrecision) {
    const double middle = std::sqrt(low.at * high.at);
    const std::optional<double> value = ratio(middle);
    if (!value) break;
    (pays(*value) == pays(low.ratio) ? low : high) = {middle, *value};
  }
  return std::sqrt(low.at * high.at);
}

/// Of ascending places, the first at which the ratio lies on the other side of 1 than at `low`.
double first_beyond(const At& ratio, std::span<const double> places, std::size_t low,
                    std::size_t high) {
  const bool paid = pays(*ratio(places[low]));
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    const std::optional<double> value = ratio(places[middle]);
    (value && pays(*value) == paid ? low : high) = middle;
  }
  return places[high];
}

/// [M345] Time to loss over the baseline's, each placed by `on`.
template <class On>
At ratio_at(const Series& series, const Series& baseline, const PredictOptions& options, On on,
            Known& known) {
  return [&series, &baseline, &options, on, &known](double at) -> std::optional<double> {
    const auto base = known.at(at, [&] { return time_to_loss(on(baseline, at), options); });
    if (!base) return std::nullopt;
    const auto time = time_to_loss(on(series, at), options);
    if (!time) return std::nullopt;
    return *time / *base;
  };
}

Curve over_network(const Series& series, const Series& baseline, const BreakEvenOptions& options,
                   Known& known) {
  const At ratio = ratio_at(series, baseline, options.predict, on_network, known);
  Curve curve;
  const double now = carried(baseline).si();
  std::vector<Ratio> found;
  for (int i = 0; i < kNetworkSamples; ++i) {
    const double times = std::pow(options.widest, 2.0 * i / (kNetworkSamples - 1) - 1);
    if (const auto value = ratio(times)) found.push_back({times, *value});
    options.sampled();
  }
  for (const Ratio& sample : found) curve.samples.push_back({now * sample.at, sample.ratio});
  if (is_level(curve)) return curve;
  for (std::size_t i = 0; i + 1 < found.size(); ++i)
    if (pays(found[i].ratio) != pays(found[i + 1].ratio))
      curve.crossings.push_back(
          {now * bisected(ratio, found[i], found[i + 1]), pays(found[i].ratio)});
  return curve;
}

/// Numbers of GPUs on which both scenarios are sound.
std::vector<double> legal_counts(const Series& series, const Series& baseline,
                                 const BreakEvenOptions& options) {
  const spec::Scenario& s = series.scenario;
  const std::int64_t machine = std::int64_t{s.cluster.nodes} * s.cluster.gpus_per_node;
  const std::int64_t most = options.most_gpus > 0
                                ? options.most_gpus
                                : std::min<std::int64_t>(machine, 64LL * s.cluster.gpus);
  const std::int64_t unit = std::int64_t{s.parallelism.tp} * s.parallelism.pp * s.parallelism.cp;
  const bool weak = options.scaling == Scaling::weak;
  std::vector<double> counts;
  // Powers of two of the smallest job, and what divides the batch between them.
  for (std::int64_t gpus = unit; gpus <= most; gpus += unit) {
    const std::int64_t copies = gpus / unit;
    const bool divides = s.training.global_batch % (copies * s.training.micro_batch) == 0;
    const bool power = (copies & (copies - 1)) == 0;
    if (weak ? !power : !divides) continue;
    try {
      with_gpus(s, static_cast<int>(gpus), weak);
      with_gpus(baseline.scenario, static_cast<int>(gpus), weak);
      counts.push_back(static_cast<double>(gpus));
    } catch (const InputError&) {
      continue;  // a rule breaks there: no job of that size
    }
  }
  return counts;
}

Curve over_gpus(const Series& series, const Series& baseline, const BreakEvenOptions& options,
                Known& known) {
  const bool weak = options.scaling == Scaling::weak;
  const auto on = [weak](const Series& one, double gpus) {
    return Series{with_gpus(one.scenario, static_cast<int>(gpus), weak), one.profile};
  };
  const At ratio = ratio_at(series, baseline, options.predict, on, known);
  const std::vector<double> counts = legal_counts(series, baseline, options);
  Curve curve;
  std::vector<std::size_t> taken;
  const std::size_t samples = std::min<std::size_t>(counts.size(), kGpuSamples);
  for (std::size_t i = samples; i < kGpuSamples; ++i) options.sampled();
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t place = samples == 1 ? 0 : i * (counts.size() - 1) / (samples - 1);
    const auto value = ratio(counts[place]);
    options.sampled();
    if (!value) continue;
    curve.samples.push_back({counts[place], *value});
    taken.push_back(place);
  }
  if (is_level(curve)) return curve;
  for (std::size_t i = 0; i + 1 < taken.size(); ++i) {
    const bool paid = pays(curve.samples[i].ratio);
    if (paid == pays(curve.samples[i + 1].ratio)) continue;
    curve.crossings.push_back({first_beyond(ratio, counts, taken[i], taken[i + 1]), paid});
  }
  return curve;
}

const Series& named(std::span<const Series> series, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Series& one : series) {
    if (one.scenario.series == name) return one;
    names.push_back(one.scenario.series);
  }
  throw InputError(Problem{
      {}, "--against", fmt::format("there is no series \"{}\"", name), did_you_mean(name, names)});
}

/// The baseline first, then by time to loss; what does not fit is last.
void rank(std::vector<BreakEven>& rows, const std::string& baseline) {
  const auto key = [&](const BreakEven& row) {
    return std::pair(row.series != baseline, row.ratio.value_or(INFINITY));
  };
  std::ranges::stable_sort(rows, {}, key);
}

BreakEven at_own_place(const Series& series, std::optional<double> base_time,
                       const BreakEvenOptions& options) {
  BreakEven row{.series = series.scenario.series,
                .outcome = predict(series.scenario, series.profile, options.predict).outcome,
                .tokens_to_loss = series.scenario.strategy.tokens_to_loss,
                .ratio = std::nullopt,
                .tokens_allowed = std::nullopt,
                .network = {},
                .gpus = {}};
  if (const auto* run = std::get_if<result::Run>(&row.outcome); run != nullptr && base_time) {
    row.ratio = row.tokens_to_loss / run->tokens_per_second.si() / *base_time;
    row.tokens_allowed = row.tokens_to_loss / *row.ratio;
  }
  return row;
}

/// Rows are those of the series, in their order.
void add_curves(BreakEvenStudy& study, std::span<const Series> series, const Series& baseline,
                const BreakEvenOptions& options) {
  Known on_networks, on_gpus;
  const auto curve_of = [&](std::size_t i) {
    const Series other = searched(series[i / 2]);
    if (other.scenario.series == study.baseline) return Curve{};
    return i % 2 == 0 ? over_network(other, baseline, options, on_networks)
                      : over_gpus(other, baseline, options, on_gpus);
  };
  std::vector<Curve> curves = parallel(2 * series.size(), options.jobs, curve_of);
  for (std::size_t i = 0; i < series.size(); ++i) {
    study.rows[i].network = std::move(curves[2 * i]);
    study.rows[i].gpus = std::move(curves[2 * i + 1]);
  }
}

}  // namespace

bool is_level(const Curve& curve) {
  return std::ranges::all_of(curve.samples,
                             [](const Ratio& one) { return std::abs(one.ratio - 1) <= kLevel; });
}

std::vector<Convergence> parse_convergence(std::string_view text, const std::string& file) {
  constexpr std::string_view kColumns[] = {"method", "tokens_to_loss", "setting", "source"};
  constexpr double kLeast = 0.01, kMost = 100;  // as the key strategy.tokens_to_loss
  const Csv csv = parse_csv(text, file, kColumns);
  Problems problems;
  std::vector<Convergence> list;
  for (const CsvRow& row : csv.rows) {
    const std::string& word = row.cells[0].text;
    const auto method = find_named<spec::Method>(word);
    if (!method)
      problems.add(place_of(csv, row.cells[0]), "method",
                   fmt::format("\"{}\" is not a method", word),
                   did_you_mean(word, all_names<spec::Method>()));
    const std::size_t before = problems.list().size();
    const double tokens = positive_number(csv, row.cells[1], "tokens_to_loss", problems);
    if (problems.list().size() == before && (tokens < kLeast || tokens > kMost))
      problems.add(place_of(csv, row.cells[1]), "tokens_to_loss",
                   fmt::format("{} is out of range {} to {}", row.cells[1].text, kLeast, kMost));
    list.push_back(
        {method.value_or(spec::Method::dense), tokens, row.cells[2].text, row.cells[3].text});
  }
  problems.raise();
  return list;
}

std::vector<Convergence> load_convergence(const std::string& file) {
  const std::filesystem::path path = file == "published"
                                         ? data_folder() / "calib" / "data" / "convergence.csv"
                                         : std::filesystem::path(file);
  return parse_convergence(read_file(path, "tokens to loss"), file);
}

void apply(std::span<const Convergence> found, std::span<Series> series) {
  for (Series& one : series)
    for (const Convergence& row : found) {
      spec::Strategy& strategy = one.scenario.strategy;
      if (row.method == strategy.method && strategy.tokens_to_loss == 1)
        strategy.tokens_to_loss = row.tokens_to_loss;
    }
}

Series on_network(const Series& series, double times) {
  Series scaled = series;
  spec::Cluster& cluster = scaled.scenario.cluster;
  cluster.nic_bandwidth *= times;
  cluster.fabric.local_bandwidth *= times;
  cluster.fabric.global_bandwidth *= times;
  cluster.fabric.cable_bandwidth *= times;
  cluster.fabric.wan_bandwidth *= times;
  for (spec::GraphEdge& edge : cluster.fabric.graph.edges) edge.capacity *= times;
  for (auto& [key, number] : scaled.profile.numbers)
    if (key.ends_with("transport_cap_Bps")) {
      number.value *= times;
      number.low *= times;
      number.high *= times;
    }
  return scaled;
}

std::size_t samples_of(std::span<const Series> series) {
  return (series.size() - 1) * (kNetworkSamples + kGpuSamples);
}

BreakEvenStudy break_even(std::span<const Series> series, const std::string& baseline,
                          const BreakEvenOptions& options) {
  const Series& base = named(series, baseline);
  BreakEvenStudy study{.scenario = base.scenario.name,
                       .baseline = baseline,
                       .calibration = base.profile.id,
                       .gpus = base.scenario.cluster.gpus,
                       .scaling = options.scaling,
                       .network = carried(base),
                       .rows = {}};
  const std::optional<double> base_time = time_to_loss(base, options.predict);
  for (const Series& one : series) study.rows.push_back(at_own_place(one, base_time, options));
  add_curves(study, series, searched(base), options);
  rank(study.rows, baseline);
  return study;
}

}  // namespace scapesim::study
