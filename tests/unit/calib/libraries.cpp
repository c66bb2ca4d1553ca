// SPDX-License-Identifier: Apache-2.0
// [M450] Ratios of attention libraries from their rates.
#include <catch2/catch.hpp>

#include "calib/gpu_kernels.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;
using calib::AttentionTiming;
using Passes = calib::AttentionTiming::Passes;

namespace {

// A few multiplications and divisions in double precision.
constexpr double kRounding = 1e-9;

/// A row that a library of these ratios would give.
AttentionTiming made_up(std::int64_t sequence, Passes passes, double forward, double backward) {
  const cost::KernelCosts costs(round_profile(), round_gpu(), spec::Precision::bf16);
  AttentionTiming row{.gpu = "round",
                      .library = "made up",
                      .shape = {.batch = 4, .sequence = sequence, .heads = 16, .head_dim = 128},
                      .passes = passes};
  cost::Attention other = row.shape;
  other.backward = true;
  Seconds time;
  if (passes != Passes::backward) time += costs.time(row.shape) / forward;
  if (passes != Passes::forward) time += costs.time(other) / backward;
  row.rate = calib::flops_of(row) / time;
  return row;
}

}  // namespace

TEST_CASE("[M450] ratios of a library are found from its forward, backward and joint rates") {
  for (const Passes other : {Passes::backward, Passes::both}) {
    cost::Profile profile = round_profile();
    std::vector<AttentionTiming> rows;
    for (const std::int64_t sequence : {1024, 4096, 16384}) {
      rows.push_back(made_up(sequence, other, 0.6, 0.4));
      rows.push_back(made_up(sequence, Passes::forward, 0.6, 0.4));
    }
    calib::fit_library(profile, "triton", rows, round_gpu(),
                       {cost::Provenance::published, "made up"});
    CHECK(profile.number("attention.triton_ratio") == Approx(0.6).epsilon(kRounding));
    CHECK(profile.number("attention.triton_backward_ratio") == Approx(0.4).epsilon(kRounding));
    CHECK(profile.numbers.at("attention.triton_ratio").low ==
          Approx(profile.number("attention.triton_ratio")).epsilon(kRounding));
  }
}

TEST_CASE("[M450] a direction without rows is left out") {
  cost::Profile profile = round_profile();
  calib::fit_library(profile, "flash2", {made_up(4096, Passes::forward, 0.5, 1)}, round_gpu(),
                     {cost::Provenance::published, "made up"});
  CHECK(profile.has("attention.flash2_ratio"));
  CHECK_FALSE(profile.has("attention.flash2_backward_ratio"));
}
