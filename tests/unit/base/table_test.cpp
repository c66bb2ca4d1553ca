// SPDX-License-Identifier: Apache-2.0
// Named enumerations, strong indices, the random source, the version.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <regex>
#include <type_traits>

#include "sim/base/id.hpp"
#include "sim/base/named.hpp"
#include "sim/base/random.hpp"
#include "sim/base/version.hpp"

namespace scapesim {
namespace {

enum class Colour { red, green, nameless };
std::span<const Named<Colour>> names_of(Colour*) {
  static constexpr Named<Colour> kRows[] = {{Colour::red, "red"}, {Colour::green, "green"}};
  return kRows;
}

TEST_CASE("an enumeration's words are found, printed and listed from one table") {
  REQUIRE(find_named<Colour>("green") == Colour::green);
  REQUIRE(find_named<Colour>("Green") == std::nullopt);
  REQUIRE(name_of(Colour::red) == "red");
  REQUIRE(all_names<Colour>() == std::vector<std::string_view>{"red", "green"});
  REQUIRE_THROWS_AS(name_of(Colour::nameless), InternalError);
}

using RankId = Id<struct RankTag>;
using LinkId = Id<struct LinkTag>;
static_assert(!std::is_convertible_v<RankId, LinkId>, "a rank is no link");
static_assert(!std::is_convertible_v<RankId, std::size_t>, "an index is asked for by name");
static_assert(index(RankId{7}) == 7 && RankId{1} < RankId{2});

TEST_CASE("the random source gives splitmix64's published sequence") {
  Random random(1234567);  // first outputs of the reference implementation for this seed
  REQUIRE(random.bits() == 6457827717110365317U);
  REQUIRE(random.bits() == 3203168211198807973U);
  REQUIRE(random.bits() == 9817491932198370423U);
}

TEST_CASE("uniform draws fill [0, 1) evenly") {
  Random random(3);
  constexpr int kDraws = 100000;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.uniform();
    REQUIRE((x >= 0 && x < 1));
    sum += x;
  }
  // Standard error of the mean is 0.289 / sqrt(1e5) = 0.0009; five of them.
  REQUIRE(std::abs(sum / kDraws - 0.5) < 0.0046);
}

TEST_CASE("below(n) reaches every value evenly and refuses n = 0") {
  Random random(4);
  std::array<int, 6> count{};
  for (int i = 0; i < 60000; ++i) ++count[random.below(6)];
  // Standard deviation of a count is sqrt(60000 * 5/36) = 91; five of them.
  for (const int n : count) REQUIRE(std::abs(n - 10000) < 456);
  REQUIRE(random.below(1) == 0);
  REQUIRE_THROWS_AS(random.below(0), InternalError);
}

TEST_CASE("a shuffle keeps the items and changes their order") {
  std::vector<int> items(50);
  std::iota(items.begin(), items.end(), 0);
  const std::vector<int> before = items;
  Random random(5);
  shuffle(items, random);
  REQUIRE(items != before);
  std::sort(items.begin(), items.end());
  REQUIRE(items == before);
}

TEST_CASE("the version is three numbers") {
  REQUIRE(std::regex_match(std::string(version()), std::regex(R"(\d+\.\d+\.\d+)")));
}

}  // namespace
}  // namespace scapesim
