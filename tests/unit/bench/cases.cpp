// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cases.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "kernels/bench/options.hpp"
#include "sim/base/error.hpp"

using namespace scapesim;
using namespace scapesim::bench;

namespace {

std::variant<Options, Ended> parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "scapesim-bench");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("kernels are measured from 2^16 to 2^30 elements, at four densities, on both masks") {
  const auto cases = kernel_cases(Extent::full);
  std::set<std::size_t> sizes;
  std::set<double> densities;
  for (const KernelCase& one : cases) {
    sizes.insert(one.elements);
    densities.insert(one.density);
  }
  CHECK(*sizes.begin() == std::size_t{1} << 16U);
  CHECK(*sizes.rbegin() == std::size_t{1} << 30U);
  CHECK(densities == std::set<double>{0.5, 0.1, 0.05, 0.01});
  CHECK(cases.size() == 5 * 8 * 4 * 2);
  CHECK(kernel_cases(Extent::quick).size() == 5 * 4 * 2 * 2);
}

TEST_CASE("[M51] a local pass at 10 % moves 16.5 bytes per element, the select 16.1") {
  const auto of = [](Kernel kernel) {
    return counted_bytes({kernel, 1000, 0.1, MaskKind::random}) / 1000;
  };
  CHECK(of(Kernel::local_pass) == Approx(16.525));
  CHECK(of(Kernel::select) == Approx(16.125));
  CHECK(of(Kernel::update) == Approx(18.525));
  CHECK(of(Kernel::write_back) == Approx(10.525));
}

TEST_CASE("lists of shapes: comments, repetitions and wrong lines") {
  const auto cases = read_shapes(
      "name,pass,m,n,k\n# a comment\n\na qkv,forward,8,16,32\nb qkv,forward,8,16,32\n"
      "a qkv,wgrad,16,32,8\n",
      "list.csv");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].name == "a qkv");
  CHECK(cases[0].k == 32);
  CHECK(cases[1].pass == GemmCase::Pass::wgrad);
  CHECK_THROWS_WITH(read_shapes("a,forward,8,16\nb,sideways,1,2,3\nc,dgrad,0,2,3\n", "list.csv"),
                    Catch::Matchers::Contains("list.csv:1") &&
                        Catch::Matchers::Contains("list.csv:2") &&
                        Catch::Matchers::Contains("list.csv:3"));
}

TEST_CASE("a thinned list is spread over the whole one") {
  std::vector<GemmCase> cases(100);
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].m = static_cast<std::int64_t>(i);
  const auto some = thinned(cases, 10);
  REQUIRE(some.size() == 10);
  CHECK(some[0].m == 0);
  CHECK(some[9].m == 90);
  CHECK(thinned(cases, 200).size() == 100);
}

TEST_CASE("families in the table's order, each once; wrong ones are named") {
  const auto all = parsed({"all", "-o", "x.jsonl"});
  CHECK(std::get<Options>(all).families.size() == 7);
  const auto two = parsed({"xfer", "env", "xfer", "-o", "x.jsonl", "--quick"});
  CHECK(std::get<Options>(two).families == std::vector<Family>{Family::env, Family::xfer});
  CHECK(std::get<Options>(two).extent == Extent::quick);
  const auto wrong = parsed({"kernel", "-o", "x.jsonl"});
  CHECK(std::get<Ended>(wrong).code == 2);
  CHECK_THAT(std::get<Ended>(wrong).text, Catch::Matchers::Contains("kernels"));
  CHECK(std::get<Ended>(parsed({"env"})).code == 2);
  CHECK(std::get<Ended>(parsed({"env", "-o", "x", "--samples", "49"})).code == 2);
  CHECK(std::get<Ended>(parsed({"--help"})).code == 0);
}
