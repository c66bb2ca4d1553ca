// SPDX-License-Identifier: Apache-2.0
// The reference learns: losses on held-out data against dense AdamS at equal steps and learning
// rate, and what its masks do meanwhile.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "kernels/reference/tasks.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"

using namespace scapesim;
using namespace scapesim::reference;

namespace {

constexpr int kSteps = 3000;

Training sparse(const Task& task, int ranks, double density, int steps = kSteps) {
  ScapeOptions options;
  options.density = density;
  return train_scape(task, ranks, steps, options);
}

}  // namespace

TEST_CASE("at density 0.1 the loss ends within 5 % of dense AdamS") {
  for (const Task& task : {least_squares(), classifier()})
    for (const int ranks : {4, 8}) {
      const Training dense = train_dense(task, ranks, kSteps);
      const Training scape = sparse(task, ranks, 0.1);
      INFO(task.name << " on " << ranks << " ranks: " << scape.first_loss << " -> dense "
                     << dense.loss << ", SCAPE " << scape.loss);
      CHECK(dense.loss < 0.5 * dense.first_loss);
      CHECK(std::abs(scape.loss / dense.loss - 1) < 0.05);
    }
}

TEST_CASE("at density 1 the loss is that of dense AdamS") {
  for (const Task& task : {least_squares(), classifier()}) {
    const double dense = train_dense(task, 4, 500).loss;
    // Single precision over 500 steps of descent that forgets its roundings.
    CHECK(sparse(task, 4, 1, 500).loss == Approx(dense).epsilon(1e-3));
  }
}

TEST_CASE("a sparser mask learns later") {
  // An element moves by the learning rate at most when it is sent, and not otherwise.
  for (const Task& task : {least_squares(), classifier()}) {
    const Training tenth = sparse(task, 4, 0.1, 500);
    const Training hundredth = sparse(task, 4, 0.01, 500);
    CHECK(hundredth.loss < 0.95 * hundredth.first_loss);
    CHECK(tenth.loss < 0.8 * hundredth.loss);
    CHECK(train_dense(task, 4, 500).loss < tenth.loss);
  }
}

TEST_CASE(
    "consecutive masks share more than chance, global masks fill in less than independent ones") {
  for (const Task& task : {least_squares(), classifier()}) {
    ScapeOptions options;
    options.mask_partition = MaskPartition::global;
    const Training global = train_scape(task, 8, 500, options);
    CHECK(global.selected_share > 2 * options.density);
    CHECK(global.selected_share < 1 - std::pow(1 - options.density, 8));
    const Training own = sparse(task, 8, 0.1, 500);
    CHECK(own.selected_share <= 0.1);  // floor of d numel, in small pieces
    CHECK(own.selected_share > 0.09);
    CHECK(own.mask_overlap > 2 * options.density);
  }
}

TEST_CASE("the shipped table of masks is what the reference does") {
  constexpr std::string_view kColumns[] = {
      "task",       "parameters", "ranks",       "steps",        "density",    "sent_share",
      "kept_share", "rank_share", "union_share", "mask_overlap", "dense_loss", "scape_loss"};
  const auto path = data_folder() / "calib" / "data" / "mask-overlap.csv";
  const Csv csv = parse_csv(read_file(path, "masks"), path.string(), kColumns);
  int repeated = 0;
  for (const CsvRow& row : csv.rows) {
    const auto value = [&](std::string_view name) {
      const auto column = std::ranges::find(kColumns, name) - std::begin(kColumns);
      return std::strtod(row.cells[static_cast<std::size_t>(column)].text.c_str(), nullptr);
    };
    const double share = value("rank_share");
    const double independent = 1 - std::pow(1 - share, value("ranks"));
    const double overlap = value("mask_overlap");
    // [M45], from two digits of the parameter.
    CHECK(overlap * share + (1 - overlap) * independent ==
          Approx(value("union_share")).margin(0.006));
    if (row.cells[0].text != "classifier" || value("ranks") != 4 || value("density") != 0.1)
      continue;
    ++repeated;
    const Training own = sparse(classifier(), 4, 0.1);
    // Elementary functions differ in the last bit between libraries, and masks with them.
    CHECK(own.mask_overlap == Approx(value("kept_share")).margin(0.02));
    CHECK(own.loss == Approx(value("scape_loss")).epsilon(0.02));
  }
  CHECK(repeated == 1);
}
