// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/documents.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/cost/profile.hpp"

namespace scapesim::workload {

namespace {

/// A length with its probability.
using Weighted = std::pair<double, double>;

/// A lognormal as many lengths, ascending: slices of the logarithm, far enough for fourth moments.
std::vector<Weighted> slices_of(const spec::DocumentLengths& lengths) {
  constexpr int kSlices = 4096;
  constexpr double kFarthest = 9;
  const double sigma = lengths.sigma;
  const double location = std::log(lengths.mean) - sigma * sigma / 2;
  const double lowest = -kFarthest, step = (2 * kFarthest + 4 * sigma) / kSlices;
  const double scale = step / std::sqrt(2 * std::acos(-1.0));
  std::vector<Weighted> list;
  for (int i = 0; i < kSlices; ++i) {
    const double z = lowest + (i + 0.5) * step;
    list.emplace_back(std::exp(location + sigma * z), scale * std::exp(-z * z / 2));
  }
  return list;
}

std::vector<Weighted> weighted(const spec::DocumentLengths& lengths) {
  if (lengths.mean > 0) return slices_of(lengths);
  std::vector<Weighted> list;
  for (const spec::LengthShare& part : lengths.shares)
    list.emplace_back(static_cast<double>(part.tokens), part.share);
  std::ranges::sort(list);
  return list;
}

void add_piece(Pieces& sum, double weight, double tokens) {
  const double square = tokens * tokens;
  sum.tokens += weight * tokens;
  sum.squares += weight * square;
  sum.cubes += weight * square * tokens;
  sum.fourths += weight * square * square;
}

Excess excess_of(const spec::Training& training) {
  return training.documents == spec::Documents::packed ? Excess::cut : Excess::dropped;
}

Pieces pieces_of(const spec::Training& training) {
  return pieces_of(training.document_length, training.sequence, excess_of(training));
}

double mean_document(const spec::Training& training) {
  const Pieces pieces = pieces_of(training);
  return pieces.squares / pieces.tokens;
}

/// [M433] Variance over mean square of the attention of a packed sequence: c = mean of squares over
/// mean is what a token's document counts, and documents are drawn until the sequence is full.
double packed_variance(const spec::Training& training) {
  const Pieces pieces = pieces_of(training);
  const double c = pieces.squares / pieces.tokens;
  const double spread = pieces.fourths - 2 * c * pieces.cubes + c * c * pieces.squares;
  const double documents = static_cast<double>(training.sequence) / pieces.tokens;
  const double whole = static_cast<double>(training.sequence) * c;
  return std::max(documents * spread, 0.0) / (whole * whole);
}

/// Micro-batches between two moments at which ranks wait for each other: those of a step, or one
/// where every layer's parameters or tokens come from all.
double micro_batches_apart(const spec::Scenario& scenario) {
  using enum spec::Sharding;
  const spec::Sharding sharding = scenario.strategy.sharding;
  const bool every = sharding == zero3 || sharding == fsdp || sharding == hsdp;
  const bool one = every || scenario.parallelism.ep > 1;
  return one ? 1 : static_cast<double>(spec::micro_batches(scenario));
}

enum class Rank { mean, slowest };

double slowest_over_mean(const spec::Scenario& scenario, double variance, Rank rank) {
  if (rank == Rank::mean) return 1;
  return expected_largest(variance, spec::data_parallel_size(scenario));
}

spec::Scenario as_seen_by(const spec::Scenario& scenario, Rank rank) {
  spec::Scenario seen = scenario;
  spec::Training& training = seen.training;
  const auto batch = static_cast<double>(training.micro_batch);
  const double apart = micro_batches_apart(scenario);
  if (training.documents == spec::Documents::packed) {
    const double variance = packed_variance(training) / (batch * apart);
    training.document_load = slowest_over_mean(scenario, variance, rank);
  } else if (training.documents == spec::Documents::longest) {
    const Longest longest =
        longest_of(training.document_length, training.sequence, training.micro_batch);
    const double variance = longest.square / (longest.mean * longest.mean) - 1;
    const double tokens = longest.mean * slowest_over_mean(scenario, variance / apart, rank);
    const auto whole = static_cast<std::int64_t>(rank == Rank::mean ? std::floor(tokens)
                                                                    : std::ceil(tokens - 1e-6));
    training.sequence = std::clamp<std::int64_t>(whole, 1, training.sequence);
  }
  return seen;
}

}  // namespace

Pieces pieces_of(const spec::DocumentLengths& lengths, std::int64_t sequence, Excess excess) {
  const auto most = static_cast<double>(sequence);
  Pieces sum;
  for (const auto& [tokens, weight] : weighted(lengths)) {
    if (excess == Excess::dropped) {
      add_piece(sum, weight, std::min(tokens, most));
      continue;
    }
    const double full = std::floor(tokens / most);
    add_piece(sum, weight * full, most);
    add_piece(sum, weight, tokens - full * most);
  }
  return sum;
}

double packed_document(const spec::Training& training) {
  return std::min(mean_document(training) * training.document_load,
                  static_cast<double>(training.sequence));
}

std::optional<double> counted_document(const spec::Training& training) {
  if (training.documents == spec::Documents::whole) return std::nullopt;
  return mean_document(training);
}

double useful_share(const spec::Training& training) {
  using enum spec::Documents;
  if (training.documents == whole || training.documents == packed) return 1;
  return pieces_of(training).tokens / static_cast<double>(training.sequence);
}

Longest longest_of(const spec::DocumentLengths& lengths, std::int64_t sequence,
                   std::int64_t documents) {
  const auto most = static_cast<double>(sequence), n = static_cast<double>(documents);
  Longest longest;
  double below = 0, power_below = 0;
  for (const auto& [tokens, weight] : weighted(lengths)) {
    below = std::min(below + weight, 1.0);
    const double power = std::pow(below, n);
    const double shown = std::min(tokens, most);
    longest.mean += (power - power_below) * shown;
    longest.square += (power - power_below) * shown * shown;
    power_below = power;
  }
  return longest;
}

double expected_largest(double variance, double ranks) {
  if (!(variance > 0) || ranks <= 1) return 1;
  constexpr int kPoints = 512;
  const double log_variance = std::log1p(variance), sigma = std::sqrt(log_variance);
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double p = std::pow((i + 0.5) / kPoints, 1 / ranks);
    sum += std::exp(sigma * cost::normal_quantile(p) - log_variance / 2);
  }
  return std::max(sum / kPoints, 1.0);
}

spec::Scenario slowest_rank(const spec::Scenario& scenario) {
  return as_seen_by(scenario, Rank::slowest);
}

spec::Scenario mean_rank(const spec::Scenario& scenario) {
  return as_seen_by(scenario, Rank::mean);
}

}  // namespace scapesim::workload
