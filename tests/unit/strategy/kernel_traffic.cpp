// SPDX-License-Identifier: Apache-2.0
// What the simulator charges for SCAPE's fused passes against what the kernels' source moves: where
// both say the same, and how much they differ where they do not.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cuda/traffic.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
namespace traffic = scapesim::kernels::traffic;
using kernels::MomentUpdate;

namespace {

constexpr double kRounding = 1e-12;  // sums of a few exact numbers in double precision
constexpr int kRanks = 8;

/// A step's charges, per parameter.
class Charges {
 public:
  explicit Charges(const spec::Scenario& scenario) : rig_(scenario), program_(rig_.program()) {}
  double of(const char* pass) const { return traffic_of(program_, pass) / rig_.parameters(); }
  /// Selected share, norms and rounding included.
  double density() const {
    for (const strategy::Call& call : calls_named(program_, "payload all-reduce"))
      return call.bytes.si() / 4 / rig_.parameters();
    return 0;
  }
  double owned() const { return std::ceil(rig_.parameters() / rig_.ranks()) / rig_.parameters(); }

 private:
  Rig rig_;
  Program program_;
};

spec::Scenario fused(double density, spec::Sharding sharding = spec::Sharding::none) {
  spec::Scenario scenario = scape_scenario(llama_1_8b(), kRanks, density);
  scenario.strategy.sharding = sharding;
  return scenario;
}

}  // namespace

TEST_CASE("[M200] a random mask of 1 % touches 7.7 % of the sectors of fp32, of 10 % 57 %") {
  CHECK(traffic::touched(0.01, 4) == Approx(1 - std::pow(0.99, 8)).epsilon(kRounding));
  CHECK(traffic::touched(0.01, 4) == Approx(0.077).margin(5e-4));
  CHECK(traffic::touched(0.1, 4) == Approx(0.57).margin(5e-3));
  CHECK(traffic::touched(0.1, 2) == Approx(1 - std::pow(0.9, 16)).epsilon(kRounding));
  CHECK(traffic::touched(0, 4) == 0);
  CHECK(traffic::touched(1, 4) == 1);
}

TEST_CASE("[M51] simulator and kernel count the local pass alike, but for the scores it writes") {
  for (const double density : {0.1, 0.01}) {
    const Charges charged(fused(density));
    const double charge = charged.of("accumulate, residual, gather");
    CHECK(charge == Approx(traffic::accumulate(charged.density(), 4, 4)).epsilon(kRounding));
    const double with_scores = traffic::accumulate(charged.density(), 4, 4, charged.owned());
    CHECK(with_scores - charge == Approx(4 * charged.owned()).epsilon(1e-9));
  }
}

TEST_CASE("[M43] simulator and kernels count the exact top-k alike") {
  const Charges charged(fused(0.01));
  const double part = traffic::select_threshold(4) + traffic::select_mask(4);
  CHECK(charged.of("top-k threshold and mask") ==
        Approx(charged.owned() * part).epsilon(kRounding));
}

TEST_CASE("[M44] the simulator charges one pass over a received mask, the kernels make two") {
  const Charges charged(fused(0.01));
  CHECK(charged.of("mask offsets") == Approx(traffic::kMaskBit).epsilon(kRounding));
  CHECK(traffic::stitch_masks() + traffic::scan_tiles() == Approx(0.25).margin(0.01));
}

TEST_CASE("[M53] simulator and kernel count the update alike; the norm before it is not charged") {
  for (const double density : {0.1, 0.01}) {
    const Charges charged(fused(density));
    CHECK(charged.of("scatter and adams update") ==
          Approx(traffic::scatter_adams(charged.density(), 4, 2)).epsilon(kRounding));
  }
  CHECK(traffic::selected_norm(0.1, 4) == Approx(2.8).margin(0.02));
  CHECK(traffic::selected_norm(0.01, 4) == Approx(0.47).margin(0.01));
}

TEST_CASE("[M54] sharded, the kernels replace the moment with the replica, the simulator before") {
  const Charges charged(fused(0.1, spec::Sharding::zero1));
  const double d = charged.density();
  const double update = traffic::scatter_adams(d, 4, 2, MomentUpdate::keep, 4);
  // Not written on the shard: 4; the second payload's values there: 4 d.
  CHECK(charged.of("scatter and adams update") - charged.owned() * update ==
        Approx(charged.owned() * (4 - 4 * d)).epsilon(1e-9));
  CHECK(charged.of("replica write-back") ==
        Approx(traffic::write_back(d, 4, 2, MomentUpdate::keep)).epsilon(kRounding));
  // Every rank needs the moment of all N in its next local pass: 4, and 4 d of payload.
  CHECK(traffic::write_back(d, 4, 2) - charged.of("replica write-back") ==
        Approx(4 + 4 * d).epsilon(1e-9));
}

TEST_CASE("counted bytes of dense updates and codes are those of their arrays") {
  CHECK(traffic::dense_update(kernels::DenseMethod::adams, 4, 0) == 20);
  CHECK(traffic::dense_update(kernels::DenseMethod::adamw, 4, 0) == 28);
  CHECK(traffic::quantise(kernels::Code::int8, 2) == Approx(3.02).margin(0.005));
  CHECK(traffic::quantise(kernels::Code::int4, 2) == Approx(2.52).margin(0.005));
  CHECK(traffic::dequantise(kernels::Code::int8, 2) == traffic::quantise(kernels::Code::int8, 2));
}
