// SPDX-License-Identifier: Apache-2.0
#include "reports/trace.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/unit/reports/examples.hpp"

using namespace scapesim;
using namespace scapesim::test;
using Json = nlohmann::json;

namespace {

Json example_trace(int copies) {
  const std::vector<Prediction> predictions(static_cast<std::size_t>(copies), example_prediction());
  return Json::parse(reports::chrome_trace(predictions));
}

}  // namespace

TEST_CASE("every stream is one named thread") {
  std::map<std::pair<int, int>, std::string> threads;
  const Json trace = example_trace(2);
  for (const Json& event : trace["traceEvents"])
    if (event["name"] == "thread_name")
      threads[{event["pid"], event["tid"]}] = event["args"]["name"];
  CHECK(threads.size() == 4);
  CHECK(threads.at({1, 1}) == "compute");
  CHECK(threads.at({2, 2}) == "communication");
}

TEST_CASE("events of a thread follow one another; times are microseconds to the nanosecond") {
  std::map<std::pair<int, int>, double> end;
  int complete = 0;
  const Json trace = example_trace(1);
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++complete;
    double& last = end[{event["pid"], event["tid"]}];
    CHECK(event["ts"].get<double>() >= last - 1e-9);
    last = event["ts"].get<double>() + event["dur"].get<double>();
  }
  CHECK(complete == 4);
  CHECK(end.at({1, 1}) == 2e6);
  CHECK(end.at({1, 2}) == Approx(1.833333333e6).epsilon(1e-12));  // whole nanoseconds
}

TEST_CASE("a collective carries its bytes and bus bandwidth") {
  const Json trace = example_trace(1);
  for (const Json& event : trace["traceEvents"])
    if (event["name"] == "reduce") {
      CHECK(event["args"]["bytes_B"] == 1e9);
      CHECK(event["args"]["busbw_Bps"].get<double>() == Approx(2e9));  // 2 (n-1)/n = 1 for two
      CHECK(event["args"]["group_size"] == 2);
      return;
    }
  FAIL("no collective in the trace");
}

TEST_CASE("an infeasible prediction leaves no events") {
  const std::vector<Prediction> predictions = {{infeasible_point().outcome, {}, {}}};
  CHECK(Json::parse(reports::chrome_trace(predictions))["traceEvents"].empty());
}

TEST_CASE("an arrow leads from inside a collective to the begin of what waits for it") {
  Prediction prediction = example_prediction();
  auto& operations = prediction.graph.classes[0].operations;
  operations[0].waits_for = {{graph::OpId{1}, 1}};  // the next step's forward waits for the sum
  const Json trace = Json::parse(reports::chrome_trace({&prediction, 1}));
  std::vector<Json> starts, ends;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") starts.push_back(event);
    if (event["ph"] == "f") ends.push_back(event);
  }
  REQUIRE(starts.size() == 1);
  REQUIRE(ends.size() == 1);
  CHECK(starts[0]["id"] == ends[0]["id"]);
  CHECK(starts[0]["tid"] == 2);
  CHECK(ends[0]["tid"] == 1);
  CHECK(ends[0]["ts"] == 1e6);
  const double at = starts[0]["ts"];
  CHECK(at > 1e6 / 3);
  CHECK(at < 5e6 / 6);
}

TEST_CASE("counters follow the use of links and end at 0") {
  Prediction prediction = example_prediction();
  prediction.graph.resources = {{"NIC", BytesPerSecond(4e9)}};
  prediction.graph.collectives[0].phases = {
      {.latency = {}, .bytes = Bytes(1e9), .rate_cap = {}, .loads = {{graph::ResourceId{0}, 1}}}};
  const Json trace = Json::parse(reports::chrome_trace({&prediction, 1}));
  std::map<std::string, std::vector<double>> values;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "C") values[event["name"]].push_back(event["args"].begin().value());
  REQUIRE(values["use of NIC"].size() == 4);
  CHECK(values["use of NIC"][0] == Approx(50));  // 1 GB in half a second of 4 GB/s
  CHECK(values["use of NIC"].back() == Approx(0).margin(1e-9));
}
