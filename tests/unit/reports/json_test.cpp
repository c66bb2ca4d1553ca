// SPDX-License-Identifier: Apache-2.0
#include "reports/json.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/reports/examples.hpp"

using namespace scapesim;
using namespace scapesim::test;
using Json = nlohmann::ordered_json;

namespace {

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> list;
  for (const auto& [key, value] : object.items()) list.push_back(key);
  return list;
}

Json run_document(const result::Run& run) {
  const std::vector<study::Point> points = {point_of(run)};
  return Json::parse(reports::runs_json(points));
}

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("a run has exactly the documented keys in the documented order") {
  const Json run = run_document(example_run());
  CHECK(keys(run) == Keys{"schema", "scenario", "calibration", "version", "gpus", "step_time_s",
                          "step_time_low_s", "step_time_high_s", "interval_level", "tokens_per_s",
                          "mfu", "efficiency", "breakdown_s", "communication", "overlap_fraction",
                          "memory_B", "energy_J", "cost_usd", "warnings"});
  CHECK(keys(run["scenario"]) == Keys{"name", "hash"});
  CHECK(keys(run["calibration"]) == Keys{"id", "weakest_provenance"});
  CHECK(keys(run["breakdown_s"]) ==
        Keys{"compute", "optimizer", "exposed_communication", "copy", "host", "bubble"});
  CHECK(keys(run["communication"][0]) == Keys{"name", "collective", "group_size", "count",
                                              "bytes_B", "busbw_Bps", "time_s", "exposed_s",
                                              "algorithm", "protocol"});
  CHECK(keys(run["memory_B"]) == Keys{"parameters", "gradients", "optimizer", "strategy",
                                      "activations", "temporary", "total", "context", "capacity"});
  CHECK(keys(run["warnings"][0]) == Keys{"code", "message"});
  CHECK(run["schema"] == "scapesim.run/1");
}

TEST_CASE("a series is named only where there are variants") {
  result::Run run = example_run();
  run.series = "AdamS";
  CHECK(run_document(run)["series"] == "AdamS");
  CHECK_FALSE(run_document(example_run()).contains("series"));
}

TEST_CASE("unknown is null") {
  result::Run run = example_run();
  run.has_interval = false;
  run.overlap_fraction = std::nullopt;
  const Json json = run_document(run);
  for (const char* key : {"step_time_low_s", "step_time_high_s", "efficiency", "overlap_fraction",
                          "energy_J", "cost_usd"}) {
    CAPTURE(key);
    CHECK(json[key].is_null());
  }
}

TEST_CASE("doubles read back to the same bits") {
  const Json json = run_document(example_run());
  CHECK(json["tokens_per_s"].get<double>() == 1.0 / 3);
  CHECK(json["communication"][0]["bytes_B"].get<double>() == 7324805120.0);
}

TEST_CASE("several points are a run-set, each with its explanation when asked") {
  const std::vector<study::Point> points = {point_of(example_run()), infeasible_point("big")};
  const std::vector<reports::Explanation> explanations = {{example_run().terms, {}}, {}};
  const Json json = Json::parse(reports::runs_json(points, explanations));
  CHECK(json["schema"] == "scapesim.run-set/1");
  REQUIRE(json["runs"].size() == 2);
  CHECK(json["runs"][0]["explain"]["terms"][0]["calibration"] ==
        Json({"gemm.*", "hbm.bandwidth_Bps"}));
  CHECK(json["runs"][1]["series"] == "big");
  CHECK(json["runs"][1]["infeasible"]["need"] == 200e9);
}

TEST_CASE("one infeasible point is schema and infeasible, nothing else") {
  const std::vector<study::Point> points = {infeasible_point()};
  const Json json = Json::parse(reports::runs_json(points));
  CHECK(keys(json) == Keys{"schema", "infeasible"});
  CHECK(keys(json["infeasible"]) == Keys{"reason", "need", "have", "hint"});
}

TEST_CASE("a scale document holds run objects, and measured points when there are some") {
  study::Scale scale;
  scale.points = {point_of(example_run())};
  std::get<result::Run>(scale.points[0].outcome).efficiency = 1;
  CHECK(keys(Json::parse(reports::scale_json(scale, {}))) == Keys{"schema", "points"});
  const std::vector<study::Measured> measured = {{"tiny", 4, "step_time_s", 1.6},
                                                 {"other", 4, "step_time_s", 1.6}};
  const Json json = Json::parse(reports::scale_json(scale, study::compare(scale.points, measured)));
  CHECK(json["schema"] == "scapesim.scale/1");
  CHECK(json["points"][0]["efficiency"] == 1.0);
  CHECK(json["against"][0]["error"].get<double>() == Approx(0.25).epsilon(1e-12));
  CHECK(json["against"][1]["predicted"].is_null());
}

TEST_CASE("a collective table has the documented keys") {
  const std::vector<CollectiveTime> rows = {
      {Bytes(8), Seconds(1e-5), BytesPerSecond(8e5), BytesPerSecond(1.5e6), "ring", ""}};
  const Json json = Json::parse(reports::collective_json(rows, {}));
  CHECK(keys(json) == Keys{"schema", "rows", "warnings"});
  CHECK(keys(json["rows"][0]) ==
        Keys{"size_B", "time_s", "algbw_Bps", "busbw_Bps", "algorithm", "protocol"});
  CHECK(json["rows"][0]["protocol"].is_null());
}

TEST_CASE("text that is not UTF-8 does not break the document") {
  result::Run run = example_run();
  run.scenario = "\xff";
  CHECK_NOTHROW(run_document(run));
}

TEST_CASE("a result that is not a number is our fault") {
  result::Run run = example_run();
  run.mfu = std::nan("");
  CHECK_THROWS_AS(run_document(run), InternalError);
}

TEST_CASE("a listing's rows are objects of its columns") {
  const Json json = Json::parse(reports::listing_json("models", {{"name", "help"}, {{"a", "b"}}}));
  CHECK(json["rows"][0]["help"] == "b");
}
