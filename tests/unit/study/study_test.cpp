// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"
#include "sim/study/scale.hpp"
#include "sim/study/validate.hpp"

using namespace scapesim;
using Catch::Matchers::Contains;

namespace {

study::Point point(int gpus, double step_time) {
  result::Run run;
  run.gpus = gpus;
  run.step_time = Seconds(step_time);
  return {"s", "", gpus, run};
}

double efficiency(const study::Point& p) { return *study::run_of(p)->efficiency; }

}  // namespace

// [M76]
TEST_CASE("strong efficiency is work per GPU and time against the smallest count") {
  std::vector<study::Point> points = {point(4, 14.027), point(64, 4.98722)};
  study::set_efficiency(points, study::Scaling::strong);
  CHECK(efficiency(points[0]) == 1);
  CHECK(efficiency(points[1]) == Approx(14.027 * 4 / (4.98722 * 64)).epsilon(1e-14));
}

TEST_CASE(
    "[M76] measured efficiency is against the measured time on the smallest count that fits") {
  study::Scale scale;
  scale.points = {point(4, 14), point(64, 5)};
  const std::vector<study::Measured> rows = {{"dense", 64, "step_time_s", 2.5},
                                             {"dense", 4, "step_time_s", 20},
                                             {"dense", 4, "mfu", 0.5},
                                             {"other", 4, "step_time_s", 20},
                                             {"dense", 2, "step_time_s", 30}};
  for (study::Point& point : scale.points) point.series = "dense";
  const auto strong = study::measured_efficiencies(scale, study::compare(scale.points, rows));
  CHECK(strong == std::vector<std::optional<double>>{0.5, 1.0, {}, {}, 20.0 * 4 / (30 * 2)});
  scale.scaling = study::Scaling::weak;
  const auto weak = study::measured_efficiencies(scale, study::compare(scale.points, rows));
  CHECK(weak[0] == 8.0);
  // Without the base measured there is nothing to compare with.
  const std::vector<study::Measured> alone = {rows[0]};
  CHECK(!study::measured_efficiencies(scale, study::compare(scale.points, alone))[0]);
}

TEST_CASE("weak efficiency is the time against the smallest count") {
  std::vector<study::Point> points = {point(4, 2), point(64, 2.5)};
  study::set_efficiency(points, study::Scaling::weak);
  CHECK(efficiency(points[1]) == Approx(0.8).epsilon(1e-14));
}

TEST_CASE("the smallest count that fits is the base") {
  std::vector<study::Point> points = {
      {"s", "", 4, result::Infeasible{}}, point(8, 2), point(16, 1)};
  study::set_efficiency(points, study::Scaling::strong);
  CHECK(efficiency(points[1]) == 1);
  CHECK(efficiency(points[2]) == 1);
  CHECK_FALSE(study::all_infeasible(points));
  CHECK(study::all_infeasible(std::span(points).first(1)));
}

TEST_CASE("measured points are read, and every mistake is told with its place") {
  const auto rows = study::parse_measured(
      "# source\nseries,gpus,metric,value\nAdamS + DO,4,step_time_s,13.3728\n", "m.csv");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].series == "AdamS + DO");
  CHECK(rows[0].value == 13.3728);
  try {
    study::parse_measured("series,gpus,metric,value\na,4.5,step_time,-1\n", "m.csv");
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Contains("m.csv:2:3: gpus: \"4.5\" is not an integer of 1 or more"));
    CHECK_THAT(error.what(), Contains("did you mean \"step_time_s\"?"));
    CHECK_THAT(error.what(), Contains("m.csv:2:17: value: \"-1\" is not a number above 0"));
  }
}

TEST_CASE("a file without measured values, and one with a value twice, are refused") {
  const auto refusal = [](const char* text) {
    try {
      study::parse_measured(text, "m.csv");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(refusal("series,gpus,metric,value\n"), Contains("m.csv:1:1: no measured values"));
  CHECK_THAT(refusal("series,gpus,metric,value\na,4,mfu,0.4\na,8,mfu,0.4\na,4,mfu,0.5\n"),
             Contains("m.csv:4:1: series: second mfu of \"a\" on 4 GPUs (the first is in line 2)"));
  CHECK(refusal("series,gpus,metric,value\na,4,mfu,0.4\na,4,step_time_s,1\nb,4,mfu,1\n") ==
        "accepted");
}

TEST_CASE("a scenario without variants is compared under its own name") {
  const std::vector<study::Point> points = {point(4, 2)};
  const std::vector<study::Measured> measured = {
      {"s", 4, "step_time_s", 1.6}, {"", 4, "step_time_s", 4}, {"s", 8, "step_time_s", 4}};
  const auto list = study::compare(points, measured);
  CHECK(*study::error_of(list[0]) == Approx(0.25).epsilon(1e-14));
  CHECK(*study::error_of(list[1]) == -0.5);
  CHECK_FALSE(study::error_of(list[2]));
}

TEST_CASE("counts are taken once each, ascending, series by series") {
  const auto file = data_folder() / "scenarios" / "vista-llama-1.8b.toml";
  const auto series = study::with_profiles(scenario::load_scenarios(file), file.parent_path());
  const PredictOptions fast{.driver = engine::Driver::standalone, .interval_draws = 0};
  const study::Scale scale = study::scale(series, {8, 4, 8}, study::Scaling::strong, fast);
  REQUIRE(scale.points.size() == 8);
  CHECK(scale.points[0].gpus == 4);
  CHECK(scale.points[1].gpus == 8);
  CHECK(scale.points[1].series == "AdamS");
  CHECK(scale.points[2].series == "AdamS + DO");
}

TEST_CASE("a count that breaks a rule is told once, not once per series") {
  const auto file = data_folder() / "scenarios" / "vista-llama-1.8b.toml";
  const auto series = study::with_profiles(scenario::load_scenarios(file), file.parent_path());
  try {
    study::scale(series, {3, 4, 601}, study::Scaling::strong, {});
    FAIL("accepted");
  } catch (const InputError& error) {
    const std::string text = error.what();
    CHECK(text.find("3 GPUs") == text.rfind("3 GPUs"));
    CHECK_THAT(text, Contains("601 GPUs"));
  }
}

TEST_CASE("the suite vista stays in its error budget") {
  const study::Validation validation = study::validate_vista(data_folder());
  CHECK(validation.rows.size() == 81);
  CHECK(validation.checks.size() == 7);
  for (const study::ValidationCheck& check : validation.checks) {
    CAPTURE(check.help, check.limit);
    REQUIRE(check.value);
    CHECK(*check.value <= check.limit);
  }
  CHECK(validation.passed);
}

TEST_CASE("the suite collectives stays in its error budget, and says what each table misses by") {
  const study::Validation validation = study::validate_collectives(data_folder());
  CHECK(validation.rows.size() > 200);
  CHECK(validation.groups.size() >= 30);
  CHECK(validation.checks.size() == 2);
  for (const study::ValidationCheck& check : validation.checks) {
    CAPTURE(check.help, check.limit);
    REQUIRE(check.value);
    CHECK(*check.value <= check.limit);
  }
}
