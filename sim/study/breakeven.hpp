// SPDX-License-Identifier: Apache-2.0
// Where a series stops paying against another one: over the speed of the network and over the
// number of GPUs, by the time that each needs to the same loss.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/study/scale.hpp"

namespace scapesim::study {

/// Time to the same loss over the baseline's, at a place on an axis.
struct Ratio {
  double at = 0;
  double ratio = 1;
};

/// Where the ratio passes 1.
struct Crossing {
  double at = 0;
  bool pays_below = false;  ///< and not above
};

/// One axis: samples in ascending order, crossings between them by bisection.
struct Curve {
  std::vector<Ratio> samples;       ///< of places where both fit
  std::vector<Crossing> crossings;  ///< none where all is level
};

/// Within 0.1 % of the baseline at every sample: neither pays.
bool is_level(const Curve& curve);

struct BreakEven {
  std::string series;
  result::Outcome outcome;  ///< at the scenario's own network and GPUs
  double tokens_to_loss = 1;
  std::optional<double> ratio;           ///< time to loss over the baseline's
  std::optional<double> tokens_allowed;  ///< tokens to loss at which the ratio would be 1
  Curve network;                         ///< at: bytes/s that a NIC carries of a large collective
  Curve gpus;                            ///< at: number of GPUs
};

struct BreakEvenStudy {
  std::string scenario;
  std::string baseline;
  std::string calibration;
  int gpus = 0;
  Scaling scaling = Scaling::strong;
  BytesPerSecond network;       ///< what a NIC carries now
  std::vector<BreakEven> rows;  ///< the baseline first, then by time to loss; infeasible ones last
};

/// Tokens to the same loss that somebody found for a method.
struct Convergence {
  spec::Method method = spec::Method::dense;
  double tokens_to_loss = 1;
  std::string setting;
  std::string source;
};
/// Reads `method,tokens_to_loss,setting,source`. Throws InputError with every problem.
std::vector<Convergence> parse_convergence(std::string_view text, const std::string& file);
/// A file, or "published": calib/data/convergence.csv.
std::vector<Convergence> load_convergence(const std::string& file);
/// Where a series' own strategy.tokens_to_loss is 1, that of its method.
void apply(std::span<const Convergence> found, std::span<Series> series);

struct BreakEvenOptions {
  Scaling scaling = Scaling::strong;
  double widest = 64;  ///< networks so many times slower and faster than the scenario's
  int most_gpus = 0;   ///< 0: what the cluster has, 64 times the scenario's at most
  PredictOptions predict;
  int jobs = 1;                           ///< threads; the result does not depend on them
  std::function<void()> sampled = [] {};  ///< called from all of them, samples_of() times
};

/// Places at which curves are sampled before any bisection.
std::size_t samples_of(std::span<const Series> series);

/// The scenario and profile with links between nodes, and transports, `times` as fast; latencies
/// stay.
Series on_network(const Series& series, double times);

/// [M345] Of every series against the one named `baseline`. Throws InputError when there is none.
BreakEvenStudy break_even(std::span<const Series> series, const std::string& baseline,
                          const BreakEvenOptions& options);

}  // namespace scapesim::study
