// SPDX-License-Identifier: Apache-2.0
#include "sim/study/collective.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "sim/base/unit_text.hpp"

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

}  // namespace scapesim::study
