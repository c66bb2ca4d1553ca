// SPDX-License-Identifier: Apache-2.0
#include "sim/study/axis.hpp"

#include <catch2/catch.hpp>

using namespace scapesim;
using study::Axis;
using study::Combine;
using study::Grid;
using Texts = std::vector<std::string>;

namespace {

Axis axis(const std::string& text) {
  Problems problems;
  Axis result = study::parse_axis(text, "--axis", 1, problems);
  problems.raise();
  return result;
}

Texts values(const std::string& text) { return axis(text).texts; }

std::string problem(const std::string& text) {
  try {
    axis(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string problem(std::vector<Axis> axes, Combine combine) {
  try {
    Grid(std::move(axes), combine);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("an axis lists values: numbers, words, quoted texts, lists") {
  CHECK(values("parallelism.tp=1,2,4") == Texts{"1", "2", "4"});
  CHECK(values(" parallelism.tp = 1, 2 ,4 ") == Texts{"1", "2", "4"});
  CHECK(axis("parallelism.tp=8").values[0].value == scenario::Value(std::int64_t{8}));
  CHECK(axis("strategy.method=dense,scape").values[1].value == scenario::Value("scape"));
  CHECK(axis("a.b=\"x,y\",'z'").values[0].value == scenario::Value("x,y"));
  CHECK(axis("strategy.offload=[],[\"residual\",\"replica\"]").values[1].value ==
        scenario::Value(Texts{"residual", "replica"}));
  CHECK(axis("strategy.density=0.1").values[0].value == scenario::Value(0.1));
  CHECK(axis("training.overlap_gradients=true").values[0].value == scenario::Value(true));
}

TEST_CASE("a range counts to its end, by steps or factors, up or down") {
  CHECK(values("c.gpus=4:16:4") == Texts{"4", "8", "12", "16"});
  CHECK(values("c.gpus=4:17:4") == Texts{"4", "8", "12", "16"});
  CHECK(values("c.gpus=16:4:-6") == Texts{"16", "10", "4"});
  CHECK(values("c.gpus=4:64:*2") == Texts{"4", "8", "16", "32", "64"});
  CHECK(values("c.gpus=64:10:/2") == Texts{"64", "32", "16"});
  CHECK(values("c.gpus=4:4:1") == Texts{"4"});
  CHECK(values("s.density=0.1:0.5:0.1") == Texts{"0.1", "0.2", "0.3", "0.4", "0.5"});
  CHECK(values("s.density=0.001:1:*10") == Texts{"0.001", "0.01", "0.1", "1"});
  CHECK(values("s.density=1e-3:3e-3:1e-3") == Texts{"0.001", "0.002", "0.003"});
  CHECK(values("c.nic=100Gbps:400Gbps:100Gbps") ==
        Texts{"100Gbps", "200Gbps", "300Gbps", "400Gbps"});
  CHECK(values("c.nic=25 GB/s:100GB/s:*2") != values("c.nic=25GB/s:100GB/s:*2.5"));
  CHECK(values("t.a=1,4:16:*2,100") == Texts{"1", "4", "8", "16", "100"});
  CHECK(axis("c.gpus=4:64:*2").values[4].value == scenario::Value(std::int64_t{64}));
}

TEST_CASE("what only looks like a range is a word") {
  CHECK(values("a.b=x:y:z") == Texts{"x:y:z"});
  CHECK(values("a.b='1:2:3'") == Texts{"'1:2:3'"});
}

TEST_CASE("a range of too many values is refused before it is listed") {
  for (const char* range :
       {"0:1:1e-300", "1:64:1e-300", "0:1000000:1", "1:2:*1.0000000001", "64:1:/1.0000000001",
        "64:1:-1e-300", "1,2,0:1:1e-300", "0:1e300:1e-300", "1e16:1e17:1"})
    CHECK_THAT(problem("s.density=" + std::string(range)),
               Catch::Contains("s.density: more than 1000000 values"));
  CHECK(values("s.density=1:1:1e-300") == Texts{"1"});
  CHECK(values("c.gpus=1:2000:1").size() == 2000);
}

TEST_CASE("a range that cannot be counted out says why") {
  CHECK(problem("c.gpus=4:64:0") ==
        "--axis:1:8: c.gpus: the range 4:64:0 is none: its step is 0 (FIRST:LAST:STEP or "
        "FIRST:LAST:*FACTOR, such as 4:64:4 or 64:1024:*2)");
  CHECK(problem("c.gpus=1,64:4:4").find("1:10: c.gpus: the range 64:4:4 is none: it leads away") !=
        std::string::npos);
  CHECK(problem("c.gpus=4:64:*1").find("a factor above 1") != std::string::npos);
  CHECK(problem("c.gpus=0:64:*2").find("above 0") != std::string::npos);
  CHECK(problem("c.nic=100Gbps:400Gbps:100").find("its units differ") != std::string::npos);
  CHECK(problem("c.nic=100Gbps:50GB/s:*2").find("its units differ") != std::string::npos);
  CHECK(problem("c.gpus=1:1e9:1").find("more than 1000000 values") != std::string::npos);
}

TEST_CASE("an axis that cannot be read says where") {
  CHECK(
      problem("cluster.gpus").find("--axis:1:1: cluster.gpus: \"cluster.gpus\" is no KEY=VALUE") ==
      0);
  CHECK(problem("=1,2").find("is no KEY=VALUE") != std::string::npos);
  CHECK(problem("c.gpus=1,,2").find("--axis:1:10: c.gpus: an empty value") == 0);
  CHECK(problem("c.gpus=").find("an empty value") != std::string::npos);
  CHECK(problem("s.offload=[\"a").find("no TOML value") != std::string::npos);
}

TEST_CASE("a grid counts all combinations, the first axis outermost") {
  const Grid grid({axis("a.x=1,2"), axis("a.y=1,2,3")}, Combine::cartesian);
  REQUIRE(grid.size() == 6);
  CHECK(grid.at(0) == std::vector<std::size_t>{0, 0});
  CHECK(grid.at(2) == std::vector<std::size_t>{0, 2});
  CHECK(grid.at(3) == std::vector<std::size_t>{1, 0});
  CHECK(grid.at(5) == std::vector<std::size_t>{1, 2});
}

TEST_CASE("zipped axes go side by side and are equally long") {
  const Grid grid({axis("a.x=1,2,2"), axis("a.y=7:9:1")}, Combine::zipped);
  REQUIRE(grid.size() == 3);
  CHECK(grid.at(2) == std::vector<std::size_t>{2, 2});
  CHECK(problem({axis("a.x=1,2"), axis("a.y=1,2,3")}, Combine::zipped) ==
        "a.y: 3 values beside 2 of a.x (zipped axes are equally long)");
}

TEST_CASE("a grid refuses a key twice, a value twice and too many points") {
  CHECK(problem({axis("a.x=1,2"), axis("a.x=3")}, Combine::cartesian) == "a.x: on two axes");
  CHECK(problem({axis("a.x=1,2,1")}, Combine::cartesian) == "a.x: 1 twice on this axis");
  CHECK(problem({axis("a.x=1:100000:1"), axis("a.y=1:100000:1")}, Combine::cartesian)
            .find("more than 100000000 points") != std::string::npos);
}
