// SPDX-License-Identifier: Apache-2.0
// Profiles: lookup, draws and perturbation [M77], the JSON format there and back, broken texts.
#include "tests/support/profile.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/base/random.hpp"

using namespace scapesim;
using namespace scapesim::test;
using cost::Draw;
using cost::Factor;
using cost::Profile;
using cost::Provenance;

namespace {

const std::vector<std::string> kShipped = {"a100-pcie",
                                           "a100-sxm-40gb",
                                           "a100-sxm-80gb",
                                           "a100-sxm-80gb-opa",
                                           "a100-vtrain",
                                           "b200-sxm",
                                           "gb200",
                                           "gh200-alps",
                                           "gh200-alps-tcp",
                                           "gh200-datasheet",
                                           "gh200-jupiter",
                                           "gh200-vista-ndr",
                                           "gh200-vista-sockets",
                                           "h100-sxm",
                                           "h100-sxm-efa",
                                           "h100-sxm-tcpxo",
                                           "h200-sxm"};

bool same(const cost::Origin& a, const cost::Origin& b) {
  return a.kind == b.kind && a.source == b.source;
}

bool same(const Profile& a, const Profile& b) {
  const auto same_number = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.value == y.second.value && x.second.low == y.second.low &&
           x.second.high == y.second.high && x.second.factor == y.second.factor &&
           same(x.second.origin, y.second.origin);
  };
  const auto same_curve = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.x == y.second.x && x.second.y == y.second.y &&
           x.second.points == y.second.points && x.second.low_factor == y.second.low_factor &&
           x.second.high_factor == y.second.high_factor && x.second.factor == y.second.factor &&
           same(x.second.origin, y.second.origin);
  };
  return a.id == b.id && a.machine == b.machine && a.note == b.note &&
         std::ranges::equal(a.numbers, b.numbers, same_number) &&
         std::ranges::equal(a.curves, b.curves, same_curve);
}

Draw all_at(double z) {
  Draw draw;
  draw.fill(z);
  return draw;
}

/// A profile, or the InputError's text; every other exception is a failure of the test.
bool refused_or_read(const std::string& text) {
  try {
    cost::parse_profile(text, "broken.json");
    return true;
  } catch (const InputError& error) {
    return !error.problems().empty();
  }
}

}  // namespace

TEST_CASE("a profile written as JSON reads back as itself") {
  Profile odd = round_profile();
  odd.note = "quotes \" and a line\nbreak, \u00b5s";
  odd.numbers["hbm.launch_s"] = {1.0 / 3e6, 1e-9, 0.1e-3, Factor::hbm, {Provenance::assumed, "x"}};
  odd.curves["attention.forward.d64"].points = {{0.1, 0.1}, {1.0 / 3, 0.7}, {1e300, 1}};
  CHECK(same(cost::parse_profile(cost::profile_json(odd), "odd.json"), odd));
  for (const std::string& id : kShipped) {
    const Profile shipped = cost::load_profile(id, {});
    CHECK(same(cost::parse_profile(cost::profile_json(shipped), id), shipped));
  }
}

TEST_CASE("a profile cut off at any byte is refused, never anything else") {
  const std::string whole = cost::profile_json(round_profile());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO("first " << length << " bytes");
    REQUIRE(refused_or_read(whole.substr(0, length)));
  }
  // Only the newline at the end may be missing.
  CHECK_THROWS_AS(cost::parse_profile(whole.substr(0, whole.size() - 2), "cut"), InputError);
  CHECK_NOTHROW(cost::parse_profile(whole.substr(0, whole.size() - 1), "cut"));
}

TEST_CASE("a profile with a random byte changed is read or refused, never anything else") {
  const std::string whole = cost::profile_json(round_profile());
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = whole;
    const auto place = static_cast<std::size_t>(random.below(changed.size()));
    changed[place] = static_cast<char>(random.below(256));
    INFO("byte " << place << " is " << static_cast<int>(changed[place]));
    REQUIRE(refused_or_read(changed));
  }
}

TEST_CASE("deeply nested JSON is refused without running out of stack") {
  CHECK(refused_or_read(std::string(200'000, '[')));
  std::string objects;
  for (int i = 0; i < 50'000; ++i) objects += "{\"a\":";
  CHECK(refused_or_read(objects));
}

TEST_CASE("a profile that is not shipped is refused with the nearest that is") {
  CHECK_THROWS_WITH(cost::load_profile("gh200-vista-socket", {}),
                    Catch::Contains("gh200-vista-sockets"));
  CHECK_THROWS_AS(cost::load_profile("no/such/profile.json", {}), InputError);
}

TEST_CASE("every shipped profile holds all required keys and says where each number is from") {
  for (const std::string& id : kShipped) {
    INFO(id);
    const Profile profile = cost::load_profile(id, {});
    CHECK(profile.id == id);
    for (const cost::ProfileKey& key : cost::number_keys())
      if (key.required) CHECK(profile.has(key.name));
    for (const auto& [name, number] : profile.numbers) {
      INFO(name);
      CHECK(number.origin.source.size() > 10);
    }
  }
}

TEST_CASE("a profile is as weak as its weakest number or curve") {
  Profile profile = round_profile();
  CHECK(cost::weakest(profile) == Provenance::measured);
  profile.curves["attention.forward.d64"].origin.kind = Provenance::published;
  CHECK(cost::weakest(profile) == Provenance::published);
  profile.numbers["host.step_s"].origin.kind = Provenance::assumed;
  CHECK(cost::weakest(profile) == Provenance::assumed);
}

TEST_CASE("asking for a key that the reader does not guarantee is our own fault") {
  CHECK_THROWS_AS(round_profile().number("power.gpu_W"), InternalError);
  CHECK_THROWS_AS(round_profile().curve("no.such.curve"), InternalError);
  CHECK_FALSE(round_profile().has("power.gpu_W"));
}

TEST_CASE("[M77] draws are the same in every call and differ between factors") {
  CHECK(cost::draws(16) == cost::draws(16));
  const std::vector<Draw> draws = cost::draws(16);
  for (std::size_t a = 0; a < Draw{}.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      CHECK(std::ranges::any_of(draws, [&](const Draw& draw) { return draw[a] != draw[b]; }));
}

TEST_CASE("[M77] every factor has one draw in each equal slice of the normal distribution") {
  for (const int count : {1, 2, 16, 33}) {
    const std::vector<Draw> draws = cost::draws(count);
    REQUIRE(draws.size() == static_cast<std::size_t>(count));
    for (std::size_t factor = 0; factor < Draw{}.size(); ++factor) {
      std::vector<double> z;
      double sum = 0;
      for (const Draw& draw : draws) {
        z.push_back(draw[factor]);
        sum += draw[factor];
      }
      std::ranges::sort(z);
      for (int i = 0; i < count; ++i) {
        const double probability = std::erfc(-z[static_cast<std::size_t>(i)] / std::sqrt(2.0)) / 2;
        // The middle of slice i; the quantile function is good to 1.2e-9.
        CHECK(probability == Approx((i + 0.5) / count).margin(1e-8));
      }
      CHECK(std::abs(sum) < 1e-7);  // slices are symmetric about 0
    }
  }
}

TEST_CASE("[M77] 1.645 standard deviations down or up is the low or high end of every range") {
  constexpr double kRange90 = 1.6448536269514722;
  Profile profile = round_profile();
  profile.numbers["hbm.bandwidth_Bps"] = {3.2e12, 2.9e12, 3.9e12, Factor::hbm, {}};
  profile.curves["attention.forward.d64"].low_factor = 0.9;
  profile.curves["attention.forward.d64"].high_factor = 1.3;
  const Profile low = cost::perturbed(profile, all_at(-kRange90));
  const Profile high = cost::perturbed(profile, all_at(kRange90));
  CHECK(low.number("hbm.bandwidth_Bps") == Approx(2.9e12).epsilon(1e-12));
  CHECK(high.number("hbm.bandwidth_Bps") == Approx(3.9e12).epsilon(1e-12));
  CHECK(low.curve("attention.forward.d64").at(1024) == Approx(0.2 * 0.9).epsilon(1e-12));
  CHECK(high.curve("attention.forward.d64").at(1024) == Approx(0.2 * 1.3).epsilon(1e-12));
  CHECK(low.number("host.step_s") == 0);
}

TEST_CASE("[M77] the middle draw changes nothing, and a draw moves only its own factor") {
  const Profile profile = cost::load_profile("gh200-datasheet", {});
  CHECK(same(cost::perturbed(profile, all_at(0)), profile));
  Draw draw = all_at(0);
  draw[static_cast<std::size_t>(Factor::copy)] = 1;
  const Profile moved = cost::perturbed(profile, draw);
  for (const auto& [key, number] : profile.numbers) {
    INFO(key);
    const bool moves = number.factor == Factor::copy && number.high > number.value;
    CHECK((moved.number(key) != number.value) == moves);
  }
}
