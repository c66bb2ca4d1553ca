// SPDX-License-Identifier: Apache-2.0
// [M432] [M433] Packed and padded documents against closed forms and draws.
#include "sim/workload/documents.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.hpp"
#include "tests/support/models.hpp"

using namespace scapesim;
using namespace scapesim::test;
using workload::Excess;
using workload::Workload;

namespace {

spec::DocumentLengths all_of(std::int64_t tokens) {
  return {.mean = 0, .sigma = 0, .shares = {{tokens, 1.0}}};
}
spec::DocumentLengths lognormal(double mean, double sigma) {
  return {.mean = mean, .sigma = sigma, .shares = {}};
}

spec::Training data_of(spec::Documents documents, const spec::DocumentLengths& lengths,
                       std::int64_t sequence) {
  spec::Training training = training_of(2, sequence);
  training.documents = documents;
  training.document_length = lengths;
  return training;
}

double attention_flops(const spec::Training& training) {
  double sum = 0;
  for (const workload::Layer& layer : workload::workload_of(llama_500m(), training).layers)
    for (const auto* list : {&layer.forward, &layer.backward})
      for (const workload::Operation& operation : *list)
        if (std::holds_alternative<workload::Attention>(operation.shape))
          sum += workload::flops_of(operation).si();
  return sum;
}

double drawn_length(const spec::DocumentLengths& lengths, Random& random) {
  const double location = std::log(lengths.mean) - lengths.sigma * lengths.sigma / 2;
  return std::exp(location + lengths.sigma * cost::normal_quantile(random.uniform(1e-12, 1)));
}

}  // namespace

TEST_CASE("[M432] one document of full length is a whole sequence, to the last bit") {
  const spec::Training packed = data_of(spec::Documents::packed, all_of(4096), 4096);
  const spec::Training whole = training_of(2, 4096);
  CHECK(attention_flops(packed) == attention_flops(whole));
  CHECK(workload::workload_of(llama_500m(), packed).model_flops ==
        workload::workload_of(llama_500m(), whole).model_flops);
  CHECK(workload::useful_share(packed) == 1);
}

TEST_CASE("[M432] documents of a k-th of the sequence cost exactly a k-th of its attention") {
  const double whole = attention_flops(training_of(2, 4096));
  for (const int k : {2, 4, 8, 32, 4096})
    CHECK(attention_flops(data_of(spec::Documents::packed, all_of(4096 / k), 4096)) ==
          Approx(whole / k).epsilon(1e-12));
}

TEST_CASE("[M432] attention is the sum of squares of any lengths") {
  const spec::DocumentLengths mixed{.mean = 0, .sigma = 0, .shares = {{512, 0.75}, {2560, 0.25}}};
  // Four documents: 3 of 512 and one of 2560 fill 4096 tokens.
  const double share = (3 * 512.0 * 512 + 2560.0 * 2560) / (4096.0 * 4096);
  CHECK(attention_flops(data_of(spec::Documents::packed, mixed, 4096)) ==
        Approx(share * attention_flops(training_of(2, 4096))).epsilon(1e-12));
}

TEST_CASE("[M432] longer documents are cut into sequences and a rest, or lose what is over") {
  const auto cut = workload::pieces_of(all_of(10'000), 4096, Excess::cut);
  CHECK(cut.tokens == 10'000);
  CHECK(cut.squares == 2 * 4096.0 * 4096 + 1808.0 * 1808);
  const auto dropped = workload::pieces_of(all_of(10'000), 4096, Excess::dropped);
  CHECK(dropped.tokens == 4096);
}

TEST_CASE("[M432] moments of a lognormal are the closed forms") {
  for (const double sigma : {0.3, 1.0, 2.0}) {
    const auto pieces =
        workload::pieces_of(lognormal(700, sigma), 1'000'000'000'000'000, Excess::cut);
    // E L^k = mean^k exp(k (k - 1) sigma^2 / 2)
    CHECK(pieces.tokens == Approx(700).epsilon(1e-9));
    CHECK(pieces.squares == Approx(700.0 * 700 * std::exp(sigma * sigma)).epsilon(1e-9));
    CHECK(pieces.cubes == Approx(std::pow(700.0, 3) * std::exp(3 * sigma * sigma)).epsilon(1e-9));
    CHECK(pieces.fourths == Approx(std::pow(700.0, 4) * std::exp(6 * sigma * sigma)).epsilon(1e-8));
  }
}

TEST_CASE("[M432] padding of a lognormal is that of a hundred thousand draws") {
  const spec::DocumentLengths lengths = lognormal(900, 1.1);
  Random random(7);
  double useful = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) useful += std::min(drawn_length(lengths, random), 4096.0);
  CHECK(workload::useful_share(data_of(spec::Documents::padded, lengths, 4096)) ==
        Approx(useful / kDraws / 4096).epsilon(0.01));  // three standard errors
}

TEST_CASE("[M433] the longest of a micro-batch is that of as many draws") {
  const spec::DocumentLengths lengths = lognormal(600, 0.8);
  Random random(11);
  constexpr int kBatches = 20'000;
  for (const int documents : {1, 4, 16}) {
    double sum = 0, squares = 0;
    for (int i = 0; i < kBatches; ++i) {
      double longest = 0;
      for (int k = 0; k < documents; ++k)
        longest = std::max(longest, std::min(drawn_length(lengths, random), 8192.0));
      sum += longest, squares += longest * longest;
    }
    const workload::Longest longest = workload::longest_of(lengths, 8192, documents);
    CHECK(longest.mean == Approx(sum / kBatches).epsilon(0.02));
    CHECK(longest.square == Approx(squares / kBatches).epsilon(0.05));
  }
}

TEST_CASE("[M433] the slowest of P ranks is that of as many draws") {
  CHECK(workload::expected_largest(0, 64) == 1);
  CHECK(workload::expected_largest(0.1, 1) == 1);
  Random random(5);
  for (const int ranks : {2, 16, 256})
    for (const double variance : {0.01, 0.2}) {
      const double log_variance = std::log1p(variance);
      double sum = 0;
      const int steps = 2000 + 40'000 / ranks;
      for (int step = 0; step < steps; ++step) {
        double largest = 0;
        for (int rank = 0; rank < ranks; ++rank)
          largest = std::max(largest, std::exp(std::sqrt(log_variance) *
                                                   cost::normal_quantile(random.uniform(1e-12, 1)) -
                                               log_variance / 2));
        sum += largest;
      }
      CHECK(workload::expected_largest(variance, ranks) == Approx(sum / steps).epsilon(0.015));
    }
}

TEST_CASE(
    "[M433] the attention of the slowest rank is that of sequences packed from drawn documents") {
  spec::Scenario s;
  s.model = llama_500m();
  s.cluster.gpus = 32;
  s.training = data_of(spec::Documents::packed, lognormal(500, 0.7), 8192);
  s.training.global_batch = 32 * 2 * 4;  // 4 micro-batches of 2
  Random random(3);
  double largest_sum = 0, mean_sum = 0;
  constexpr int kSteps = 200;
  for (int step = 0; step < kSteps; ++step) {
    double largest = 0;
    for (int rank = 0; rank < 32; ++rank) {
      double squares = 0;
      for (int sequence = 0; sequence < 8; ++sequence)
        for (double left = 8192; left > 0;) {
          const double piece = std::min(drawn_length(s.training.document_length, random), left);
          squares += piece * piece, left -= piece;
        }
      largest = std::max(largest, squares), mean_sum += squares / 32;
    }
    largest_sum += largest;
  }
  const double load = workload::slowest_rank(s).training.document_load;
  // The drawn sequences cut their last document, the formula's do not, and is a lognormal.
  CHECK(load == Approx(largest_sum / mean_sum).epsilon(0.04));
  s.strategy.sharding = spec::Sharding::fsdp;  // ranks meet in every micro-batch
  CHECK(workload::slowest_rank(s).training.document_load > load);
  s.cluster.gpus = 1;
  CHECK(workload::slowest_rank(s).training.document_load == 1);
}

TEST_CASE("[M433] sequences padded to their micro-batch are longer for the slowest rank") {
  spec::Scenario s;
  s.model = llama_500m();
  s.cluster.gpus = 16;
  s.training = data_of(spec::Documents::longest, lognormal(700, 1.0), 4096);
  s.training.global_batch = 64;
  const std::int64_t mean = workload::mean_rank(s).training.sequence;
  const std::int64_t slowest = workload::slowest_rank(s).training.sequence;
  CHECK(mean > 700);
  CHECK(slowest > mean);
  CHECK(slowest <= 4096);
  // All alike: nothing to wait for.
  s.training.document_length = all_of(700);
  CHECK(workload::slowest_rank(s).training.sequence == 700);
  CHECK(workload::mean_rank(s).training.sequence == 700);
}
