// SPDX-License-Identifier: Apache-2.0
#include "sim/study/filter.hpp"

#include <catch2/catch.hpp>

#include "sim/base/error.hpp"
#include "sim/scenario/load.hpp"

using namespace scapesim;
using study::Filter;

namespace {

spec::Scenario scenario() {
  const std::vector<std::string> set = {"cluster.gpus=32", "training.micro_batch=4"};
  return scenario::load_scenarios("scenarios/vista-llama-1.8b.toml", set)[3];  // SCAPE d=0.01
}

bool keeps(const std::string& text) { return Filter(text, "--filter").keeps(scenario()); }

std::string problem(const std::string& text) {
  try {
    Filter(text, "--filter");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a filter computes with keys by their last word or in full") {
  CHECK(keeps("gpus == 32"));
  CHECK(keeps("cluster.gpus == 32"));
  CHECK_FALSE(keeps("gpus != 32"));
  CHECK(keeps("tp * pp * dp == gpus"));
  CHECK(keeps("tp*pp*dp==gpus"));
  CHECK(keeps("micro_batches * micro_batch * dp == global_batch"));
  CHECK(keeps("global_batch % (dp * micro_batch) == 0"));
  CHECK_FALSE(keeps("global_batch % 1000 == 0"));
  CHECK(keeps("density < 0.02 and density >= 1e-2"));
}

TEST_CASE("operators bind as in arithmetic and from the left") {
  CHECK(keeps("2 + 3 * 4 == 14"));
  CHECK(keeps("(2 + 3) * 4 == 20"));
  CHECK(keeps("10 - 3 - 2 == 5"));
  CHECK(keeps("64 / 4 / 2 == 8"));
  CHECK(keeps("-2 * -3 == 6"));
  CHECK(keeps("7 % 4 * 2 == 6"));
  CHECK(keeps("1 == 1 or 1 == 2 and 1 == 3"));
  CHECK_FALSE(keeps("(1 == 1 or 1 == 2) and 1 == 3"));
  CHECK(keeps("not 1 == 2 and 2 == 2"));
  CHECK(keeps("!(1 == 1) || 2 == 2 && !(3 == 4)"));
  CHECK(keeps("(1 < 2) == (3 < 4)"));
}

TEST_CASE("quantities carry units and are compared in SI") {
  CHECK(keeps("nic_bandwidth == 400Gbps"));
  CHECK(keeps("nic_bandwidth == 50GB/s"));
  CHECK(keeps("nic_bandwidth / 2 == 25GB/s"));
  CHECK(keeps("cluster.nic_bandwidth >= 100Gbps and nic_bandwidth < 0.8Tbps"));
  CHECK(keeps("gpu_memory == 96GiB"));
  CHECK(keeps("gpu_memory > 80 * 1GB"));
  CHECK(keeps("latency < 1ms"));
  CHECK(keeps("80GiB/tp == 80GiB"));  // not gibibytes per tp
}

TEST_CASE("words and flags are compared as such") {
  CHECK(keeps("method == \"scape\""));
  CHECK(keeps("method == 'scape' and method != \"dense\""));
  CHECK(keeps("series == 'SCAPE d=0.01'"));
  CHECK(keeps("model.preset == 'llama-1.8b' and cluster.preset == 'vista'"));
  CHECK_FALSE(keeps("overlap_gradients"));
  CHECK(keeps("not overlap_gradients and overlap_gradients == false"));
  CHECK(keeps("offload == '[]'"));
}

TEST_CASE("what is none or no number compares to nothing") {
  CHECK_FALSE(keeps("bucket > 0"));
  CHECK_FALSE(keeps("bucket <= 0"));
  CHECK_FALSE(keeps("bucket == 0"));
  CHECK(keeps("bucket != 0"));
}

TEST_CASE("more ranks than GPUs are no data parallelism, and no division by it") {
  const std::vector<std::string> set = {"cluster.gpus=32"};
  spec::Scenario s = scenario::load_scenarios("scenarios/vista-llama-1.8b.toml", set)[0];
  s.parallelism.tp = 64;
  CHECK(Filter("dp == 0 and micro_batches == 0", "--filter").keeps(s));
  CHECK_FALSE(Filter("tp * pp * dp == gpus", "--filter").keeps(s));
  CHECK_FALSE(Filter("gpus % dp == 0", "--filter").keeps(s));
}

TEST_CASE("units of both sides are the same") {
  CHECK(problem("gpu_memory > 80") ==
        "--filter:1:14: a number without a unit compared with cluster.gpu_memory in \"gpu_memory > "
        "80\" (cluster.gpu_memory needs bytes, such as 80GiB)");
  CHECK(problem("400Gbps < gpu_memory")
            .starts_with("--filter:1:1: bytes per second, such as 400Gbps or 25GB/s compared with "
                         "cluster.gpu_memory"));
  CHECK(problem("tp < 8GB").starts_with("--filter:1:6: bytes, such as 80GiB compared with"));
  CHECK(problem("nic_bandwidth == gpu_memory").starts_with("--filter:1:18: bytes, such as"));
  CHECK(
      problem("latency + 1 > 5us").starts_with("--filter:1:11: a number without a unit added to"));
  CHECK(
      problem("gpu_memory % 3 == 0").starts_with("--filter:1:14: a number without a unit divided"));
  for (const char* sound :
       {"gpu_memory / nic_bandwidth < 10s", "gpu_memory / 80GiB > 1", "nic_bandwidth > 0",
        "gpu_memory - 1GiB > 0", "2 * latency < 1ms", "gpu_memory * tp >= 96GiB"}) {
    INFO(sound);
    CHECK(keeps(sound));
  }
}

TEST_CASE("words are those that a key can be") {
  CHECK(problem("method == 'scap'") ==
        "--filter:1:11: \"scap\" is never strategy.method in \"method == 'scap'\" (did you mean "
        "\"scape\"?)");
  CHECK(problem("'zero' == sharding").starts_with("--filter:1:1: \"zero\" is never"));
  CHECK(problem("method == 'Scape'").find("did you mean \"scape\"") != std::string::npos);
  const std::vector<std::string> series = {"AdamS", "SCAPE d=0.01"};
  CHECK_THROWS_AS(Filter("series == 'Adam'", "--filter", series), InputError);
  CHECK_NOTHROW(Filter("series != 'AdamS' and name == 'any'", "--filter", series));
}

TEST_CASE("nothing is divided by 0") {
  CHECK(problem("tp / 0 == 1").starts_with("--filter:1:6: a division by 0"));
  CHECK(problem("tp / (2 - 2) == 1").starts_with("--filter:1:7: a division by 0"));
  CHECK(problem("5 % 0 == 0").starts_with("--filter:1:5: a remainder by 0"));
}

TEST_CASE("a filter that cannot be read says where and what instead") {
  CHECK(problem("gpuz < 4") ==
        "--filter:1:1: \"gpuz\" is no key in \"gpuz < 4\" (did you mean \"gpus\"?)");
  CHECK(problem("gpus = 4") == "--filter:1:6: \"=\" in \"gpus = 4\" (equality is ==)");
  CHECK(problem("gpus") ==
        "--filter:1:1: a number where a condition is needed in \"gpus\" "
        "(compare it, such as tp <= 8)");
  CHECK(problem("gpus < 4 < 8") ==
        "--filter:1:10: a second comparison in a row in \"gpus < 4 < 8\" (join them with and)");
  CHECK(problem("preset == 'vista'") ==
        "--filter:1:1: \"preset\" is a key of several sections in \"preset == 'vista'\" "
        "(write model.preset or cluster.preset)");
  CHECK(problem("method == scape").starts_with("--filter:1:11: \"scape\" is no key"));
  CHECK(problem("method < 'scape'").starts_with("--filter:1:1: a word where a number is needed"));
  CHECK(problem("tp == 'two'").starts_with("--filter:1:7: a word where a number is needed"));
  CHECK(problem("tp and pp").starts_with("--filter:1:1: a number where a condition is needed"));
  CHECK(problem("(tp == 2").starts_with("--filter:1:1: a parenthesis that is not closed"));
  CHECK(problem("tp == 2)").starts_with("--filter:1:8: unexpected \")\""));
  CHECK(problem("tp ==").starts_with("--filter:1:6: nothing after the last word"));
  CHECK(problem("tp == 2 pp").starts_with("--filter:1:9: unexpected \"pp\""));
  CHECK(problem("method == 'scape").starts_with("--filter:1:11: a quote that is not closed"));
  CHECK(problem("nic_bandwidth > 400Gb").starts_with("--filter:1:20: unknown unit \"Gb\""));
  CHECK(problem("tp ~ 2").starts_with("--filter:1:4: \"~\" has no meaning"));
  CHECK(problem("").starts_with("--filter:1:1: no condition"));
  CHECK(problem("1e999 > 1").starts_with("--filter:1:1: a number out of range"));
  CHECK(problem(std::string(1000, '(')).find("too many parentheses") != std::string::npos);
  CHECK(problem(std::string(20'000, ' ')).find("more than 10000 characters") != std::string::npos);
}
