// SPDX-License-Identifier: Apache-2.0
#include "sim/study/collective.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "calib/import.hpp"
#include "sim/base/error.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/result/metrics.hpp"

namespace scapesim::study {
namespace {

constexpr std::string_view kSmallestFitted = "network.smallest_fitted_B";

std::vector<result::Warning> warnings_of(std::span<const Bytes> sizes,
                                         const cost::Profile& profile) {
  if (!profile.has(kSmallestFitted)) return {};
  const Bytes smallest(profile.number(kSmallestFitted));
  const auto below = std::ranges::count_if(sizes, [&](Bytes size) { return size < smallest; });
  if (below == 0) return {};
  return {{"extrapolation",
           fmt::format("{} of {} sizes are below {}, the smallest that the latency of profile {} "
                       "was fitted to: small messages are usually faster",
                       below, sizes.size(), text_of(smallest), profile.id)}};
}

}  // namespace

CollectiveTable collective_table(graph::CollectiveKind kind, std::span<const Bytes> sizes,
                                 const spec::Cluster& cluster, const cost::Profile* profile,
                                 const CollectiveOptions& options) {
  CollectiveTable table;
  table.rows = predict_collectives(kind, sizes, cluster, profile, options);
  if (profile != nullptr) table.warnings = warnings_of(sizes, *profile);
  return table;
}

std::vector<MeasuredCollective> measured_collectives(std::span<const std::string> logs,
                                                     graph::CollectiveKind kind,
                                                     const spec::Cluster& cluster,
                                                     const cost::Profile* profile,
                                                     const CollectiveOptions& options) {
  std::vector<MeasuredCollective> rows;
  std::vector<Bytes> sizes;
  const double factor = result::busbw_factor(kind, cluster.gpus);
  for (const std::string& log : logs) {
    const std::size_t before = rows.size();
    for (const calib::CollectiveSample& sample : calib::import_file(log).collectives) {
      if (sample.kind != kind || sample.ranks != cluster.gpus || sample.in_training ||
          sample.time <= Seconds(0) || sample.size <= Bytes(0))
        continue;
      rows.push_back({.size = sample.size,
                      .time = sample.time,
                      .busbw = factor * (sample.size / sample.time),
                      .predicted = {},
                      .predicted_busbw = {},
                      .source = log});
      sizes.push_back(sample.size);
    }
    if (rows.size() == before)
      throw InputError(Problem{{.file = log},
                               "--against",
                               fmt::format("holds no {} of {} GPUs", name_of(kind), cluster.gpus),
                               "an nccl-tests log of that size is expected"});
  }
  const auto predicted = predict_collectives(kind, sizes, cluster, profile, options);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].predicted = predicted[i].time;
    rows[i].predicted_busbw = predicted[i].busbw;
  }
  return rows;
}

}  // namespace scapesim::study
