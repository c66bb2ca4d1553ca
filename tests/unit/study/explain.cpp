// SPDX-License-Identifier: Apache-2.0
#include "sim/study/explain.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "calib/import.hpp"
#include "sim/base/error.hpp"
#include "sim/scenario/load.hpp"

using namespace scapesim;
using Catch::Matchers::Contains;

namespace {

study::Series dense_on_vista() {
  std::vector<spec::Scenario> list = scenario::load_scenarios("scenarios/vista-llama-1.8b.toml");
  list.resize(1);
  return study::with_profiles(std::move(list), "scenarios").front();
}

/// A Megatron-LM log of ten equal iterations with a timer block each.
std::string log_of(double step_ms, const std::string& timers) {
  std::string text;
  for (int i = 1; i <= 10; ++i)
    text += " iteration " + std::to_string(i) +
            "/ 10 | consumed samples: 1024 | elapsed time per iteration (ms): " +
            std::to_string(step_ms) + " | learning rate: 1E-4 | global batch size: 1024 |\n" +
            "(min, max) time across ranks (ms):\n" + timers;
  return text;
}

std::string timer(const std::string& name, double ms) {
  return "    " + name + " ............................: (" + std::to_string(ms) + ", " +
         std::to_string(ms) + ")\n";
}

const study::ExplainedTerm& term(const study::Explained& explained, std::string_view name) {
  const auto found = std::ranges::find(explained.terms, name, &study::ExplainedTerm::name);
  REQUIRE(found != explained.terms.end());
  return *found;
}

}  // namespace

TEST_CASE("[M261] the parts of a log sum to its step, the predicted ones to the prediction") {
  const std::string text = log_of(5000, timer("forward-backward", 700) +
                                            timer("all-grads-sync", 4100) + timer("optimizer", 90));
  const auto explained = study::explain(dense_on_vista(), calib::import_bytes(text, "train.log"));
  CHECK(explained.measured.si() == Approx(5).epsilon(1e-12));
  REQUIRE(explained.terms.size() == 4);
  Seconds measured(0), predicted(0);
  for (const study::ExplainedTerm& part : explained.terms) {
    measured += *part.measured;
    predicted += *part.predicted;
  }
  CHECK(measured.si() == Approx(5).epsilon(1e-12));
  CHECK(predicted.si() == Approx(explained.predicted.si()).epsilon(1e-12));
  CHECK(term(explained, "rest of the step").measured->si() == Approx(0.11).epsilon(1e-9));
}

TEST_CASE("only parts that differ by a tenth carry a cause, by the side they differ to") {
  const auto of = [](double gradients_ms) {
    const std::string text = log_of(6000, timer("all-grads-sync", gradients_ms));
    return study::explain(dense_on_vista(), calib::import_bytes(text, "train.log"));
  };
  const Seconds predicted = *term(of(4100), "gradient communication").predicted;
  const auto cause = [&](double share) {
    return term(of(predicted.si() * 1e3 * share), "gradient communication").cause;
  };
  CHECK(cause(1.02).empty());
  CHECK_THAT(cause(1.3), Contains("fell back to TCP"));
  CHECK_THAT(cause(0.5), Contains("overlapped with backward"));
}

TEST_CASE("a log without timers says how to get them") {
  const auto explained =
      study::explain(dense_on_vista(), calib::import_bytes(log_of(5000, ""), "train.log"));
  CHECK(explained.terms.size() == 1);
  REQUIRE(explained.notes.size() == 1);
  CHECK_THAT(explained.notes[0], Contains("--timing-log-level 2"));
}

TEST_CASE("a trace is compared by classes of kernels, per step") {
  std::string text = R"({"traceEvents": [)";
  for (int step = 0; step < 2; ++step) {
    const std::string begin = std::to_string(step * 5'000'000);
    text += R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" + std::to_string(step) +
            R"(","ts":)" + begin + R"(,"dur":5000000,"pid":1,"tid":1,"args":{}},)" +
            R"({"ph":"X","cat":"kernel","name":"sm90_xmma_gemm_bf16","ts":)" + begin +
            R"(,"dur":600000,"pid":0,"tid":7,"args":{"device":0,"stream":7}},)" +
            R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","ts":)" +
            begin + R"(,"dur":4000000,"pid":0,"tid":9,"args":{"device":0,"stream":9}},)";
  }
  text.back() = ']';
  text += "}";
  const auto explained = study::explain(dense_on_vista(), calib::import_bytes(text, "trace.json"));
  CHECK(explained.measured.si() == Approx(5).epsilon(1e-12));
  CHECK(term(explained, "GEMM kernels").measured->si() == Approx(0.6).epsilon(1e-12));
  CHECK(term(explained, "GEMM kernels").predicted->si() > 0.1);
  CHECK(term(explained, "communication kernels").measured->si() == Approx(4).epsilon(1e-12));
  REQUIRE_FALSE(explained.notes.empty());
  CHECK_THAT(explained.notes[0], Contains("communication hidden behind computation: 15 %"));
}

TEST_CASE("a file without a step is refused") {
  const std::string text =
      R"({"traceEvents": [{"ph":"X","cat":"kernel","name":"gemm","ts":0,"dur":5,"pid":0,"tid":7,)"
      R"("args":{"device":0}}]})";
  CHECK_THROWS_WITH(study::explain(dense_on_vista(), calib::import_bytes(text, "trace.json")),
                    Contains("trace.json: holds no step time"));
}

TEST_CASE("timers inside one another, and another batch than the scenario's, are named") {
  std::string text = log_of(5000, timer("forward-backward", 4900) + timer("all-grads-sync", 4000));
  const auto nested = study::explain(dense_on_vista(), calib::import_bytes(text, "train.log"));
  REQUIRE(nested.notes.size() == 1);
  CHECK_THAT(nested.notes[0], Contains("some of them run inside others"));
  for (std::size_t at = 0; (at = text.find("batch size: 1024", at)) != std::string::npos; ++at)
    text.replace(at, 16, "batch size:  512");
  const auto other = study::explain(dense_on_vista(), calib::import_bytes(text, "train.log"));
  CHECK_THAT(other.notes[0], Contains("measured with a global batch of 512, predicted for 1024"));
}
