// SPDX-License-Identifier: Apache-2.0
// [M41] [M45] [M302] [M310] What top-k, global masks and codes are charged is what the reference
// selects, OR-s and codes, element for element.
#include <catch2/catch.hpp>

#include "kernels/reference/quantisation.hpp"
#include "kernels/reference/selection.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"
#include "sim/base/random.hpp"
#include "sim/strategy/quantised.hpp"
#include "sim/strategy/selection.hpp"
#include "sim/strategy/sparse.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

std::vector<float> random_values(std::size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

}  // namespace

TEST_CASE("[M302] top-k gathers as many pairs as the reference selects of every tensor") {
  for (const double density : {0.001, 0.01, 0.37, 1.0}) {
    spec::Scenario s = scenario_of(gpt({2, 20, 2, 30, 101}), 3);
    s.strategy.method = spec::Method::topk;
    s.strategy.density = density;
    const Rig rig(s);
    std::size_t selected = 0;
    for (const workload::Tensor& tensor : rig.context().tensors)
      selected += reference::top_count(
          {0, static_cast<std::size_t>(tensor.numel), tensor.always_selected}, density);
    CHECK(calls_named(rig.program(), "index and value all-gather").at(0).bytes.si() ==
          3.0 * 8 * static_cast<double>(selected));
  }
}

TEST_CASE("[M310] codes and scales are those that the reference makes of every rank's part") {
  Random random(7);
  for (const std::size_t values : {1UL, 255UL, 256UL, 257UL, 10'000UL})
    for (const std::size_t ranks : {1UL, 3UL}) {
      const std::size_t part = (values + ranks - 1) / ranks;
      std::size_t scales = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank)
        scales += reference::quantised(random_values(part, random), 256, 127).scales.size();
      const auto charged =
          strategy::quantised(static_cast<double>(values), 8, 256, static_cast<double>(ranks));
      CHECK(charged.scales == static_cast<double>(scales));
      CHECK(charged.bytes() == static_cast<double>(values + 4 * scales));
    }
}

TEST_CASE("[M45] independent masks fill in as charged") {
  Random random(11);
  constexpr std::size_t kElements = 20'000;
  for (const int ranks : {2, 8, 32})
    for (const double density : {0.01, 0.1}) {
      std::vector<std::uint8_t> any(kElements);
      const auto k = static_cast<std::size_t>(density * kElements);
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<std::uint8_t> mask(kElements);
        reference::mark_top<float>(random_values(kElements, random), k, mask);
        for (std::size_t i = 0; i < kElements; ++i) any[i] |= mask[i];
      }
      const double measured = static_cast<double>(reference::count(any)) / kElements;
      const double charged = strategy::union_density(density, ranks, 0);
      // Three standard deviations of a binomial share.
      CHECK(std::abs(measured - charged) <
            3 * std::sqrt(charged * (1 - charged) / kElements) + 1e-12);
    }
}

TEST_CASE("[M45] masks of the reference optimizer fill in as charged with their measured overlap") {
  const Csv csv = parse_table(
      read_file(data_folder() / "calib" / "data" / "mask-overlap.csv", "overlaps"), "overlaps");
  const auto column = [&](std::string_view name) {
    for (std::size_t i = 0; i < csv.header.cells.size(); ++i)
      if (csv.header.cells[i].text == name) return i;
    FAIL("no column " << name);
    return std::size_t{0};
  };
  REQUIRE(csv.rows.size() >= 18);
  for (const CsvRow& row : csv.rows) {
    const auto value = [&](std::string_view name) {
      return std::stod(row.cells[column(name)].text);
    };
    const int ranks = static_cast<int>(value("ranks"));
    const double own = value("rank_share");
    const double charged = strategy::union_density(own, ranks, value("mask_overlap"));
    // The overlap is rounded to 0.01, the shares to 0.0001.
    const double span = strategy::union_density(own, ranks, 0) - own;
    CHECK(std::abs(charged - value("union_share")) < 0.0051 * span + ranks * 6e-5);
  }
}
