// SPDX-License-Identifier: Apache-2.0
// What lengths of documents do to sequences: how many of the tokens are useful, how far attention
// reaches, how much longer the slowest rank takes.
#pragma once

#include <optional>

#include "sim/spec/spec.hpp"

namespace scapesim::workload {

/// [M432] Per document, sums over the pieces of it that lie in sequences.
struct Pieces {
  double tokens = 0;
  double squares = 0;  ///< of the pieces' lengths
  double cubes = 0;
  double fourths = 0;
};

/// Documents longer than the sequence are cut into pieces of it, or lose what is over.
enum class Excess { cut, dropped };
Pieces pieces_of(const spec::DocumentLengths& lengths, std::int64_t sequence, Excess excess);

/// [M432] How many tokens the documents of a packed sequence had if all were alike and attention
/// cost the same: of the mean rank times training.document_load.
double packed_document(const spec::Training& training);

/// [M432] The same without padding, as model FLOPs count; none where documents fill sequences.
std::optional<double> counted_document(const spec::Training& training);

/// [M432] Tokens of documents over tokens of whole sequences.
double useful_share(const spec::Training& training);

/// [M433] Mean and mean square of the longest of so many documents, cut off at the sequence.
struct Longest {
  double mean = 0;
  double square = 0;
};
Longest longest_of(const spec::DocumentLengths& lengths, std::int64_t sequence,
                   std::int64_t documents);

/// [M433] Mean of the largest of `ranks` lognormal draws of mean 1.
double expected_largest(double variance, double ranks);

/// [M433] The step of the rank with most work: attention above the mean, or longer sequences.
/// Memory is not asked here: it must do for the longest.
spec::Scenario slowest_rank(const spec::Scenario& scenario);
/// The step of a mean rank, which no step is shorter than.
spec::Scenario mean_rank(const spec::Scenario& scenario);

}  // namespace scapesim::workload
