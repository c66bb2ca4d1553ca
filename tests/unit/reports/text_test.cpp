// SPDX-License-Identifier: Apache-2.0
#include "reports/text.hpp"

#include <catch2/catch.hpp>

#include "reports/csv.hpp"
#include "reports/table.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace scapesim;
using namespace scapesim::test;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

TEST_CASE("columns align by what is seen, and lines end without spaces") {
  const std::string text = reports::table({{"name", reports::Align::left}, {"n"}},
                                          {{"µ", "10"}, {"long", "5"}, {"", ""}}, "  ");
  CHECK(text == "  name   n\n  µ     10\n  long   5\n\n");
}

TEST_CASE("a run's breakdown sums to its step in the text too") {
  const std::vector<study::Point> points = {point_of(example_run())};
  const std::string text = reports::runs_text(points);
  CHECK_THAT(text, Contains("tiny, 4 GPUs\nstep time   2 s  (1.9 s to 2.25 s, 90 % interval)"));
  CHECK_THAT(text, Contains("  exposed communication  0.7000   35.0 %  ##############\n"));
  CHECK_THAT(text, Contains("  step                   2.0000  100.0 %\n"));
  CHECK_THAT(text, Contains("calibration gh200-test, weakest number used: datasheet"));
  CHECK_THAT(text, !Contains("is assumed"));  // standard error has it
  CHECK(reports::warning_notes(points) ==
        std::vector<std::string>{"warning: assumed: a number is assumed"});
}

TEST_CASE("memory is in GiB with a verdict") {
  result::Run run = example_run();
  run.memory.total = Bytes(90.0 * (1U << 30U)), run.memory.context = Bytes(1.0 * (1U << 30U));
  const std::vector<study::Point> fits = {point_of(run)};
  CHECK_THAT(reports::runs_text(fits), Contains("fits, 5.00 GiB to spare"));
}

TEST_CASE("an infeasible point tells need, have and a way out") {
  const std::vector<study::Point> points = {infeasible_point()};
  const std::string text = reports::runs_text(points);
  CHECK_THAT(text, Contains("tiny, 8 GPUs: infeasible"));
  CHECK_THAT(text, Contains("needs 186.26 GiB per GPU, has 93.13 GiB"));
  CHECK_THAT(text, Contains("shard it"));
}

TEST_CASE("what does not fit in host memory is told per node") {
  study::Point point = infeasible_point();
  auto& infeasible = std::get<result::Infeasible>(point.outcome);
  infeasible.memory.capacity = infeasible.have;
  CHECK_THAT(reports::runs_text(std::vector{point}), Contains("per GPU, has 93.13 GiB"));
  infeasible.memory.capacity = infeasible.have / 2;
  CHECK_THAT(reports::runs_text(std::vector{point}), Contains("per node, has 93.13 GiB"));
}

TEST_CASE("several series stand side by side; a warning of one names it") {
  result::Run quiet = example_run();
  quiet.series = "quiet", quiet.warnings.clear();
  result::Run warned = example_run();
  warned.series = "warned";
  quiet.memory.total = warned.memory.total = Bytes(2.0 * (1 << 30));
  const std::vector<study::Point> points = {point_of(quiet), point_of(warned),
                                            infeasible_point("big")};
  const std::string text = reports::runs_text(points);
  CHECK_THAT(text, Contains("quiet  warned  big"));
  CHECK_THAT(reports::warning_notes(points).at(0), EndsWith("a number is assumed [warned]"));
  CHECK_THAT(text, Contains("tiny, big, 8 GPUs: infeasible"));
}

TEST_CASE("a warning names the counts when not all of a series carry it") {
  study::Scale scale;
  for (const int gpus : {4, 8}) {
    result::Run run = example_run();
    run.series = "s", run.gpus = gpus;
    if (gpus == 4) run.warnings.clear();
    scale.points.push_back(point_of(run));
  }
  CHECK_THAT(reports::warning_notes(scale.points).at(0),
             EndsWith("a number is assumed [s on 8 GPUs]"));
}

TEST_CASE("of many warnings of one kind two are shown, and how many more there are") {
  study::Scale scale;
  for (const int gpus : {4, 8, 16, 32}) {
    result::Run run = example_run();
    run.gpus = gpus;
    run.warnings = {{"extrapolation", fmt::format("{} MB", gpus)}, {"assumed", "a number"}};
    scale.points.push_back(point_of(run));
  }
  CHECK(reports::warning_notes(scale.points) ==
        std::vector<std::string>{
            "warning: extrapolation: 4 MB [on 4 GPUs]", "warning: extrapolation: 8 MB [on 8 GPUs]",
            "warning: extrapolation: 2 more of this kind; --json lists all of them",
            "warning: assumed: a number"});
}

TEST_CASE("a scale table puts measured step times and errors beside the predicted") {
  study::Scale scale;
  scale.points = {point_of(example_run()), infeasible_point()};
  const std::vector<study::Measured> measured = {
      {"tiny", 4, "step_time_s", 1.6}, {"tiny", 4, "mfu", 0.5}, {"tiny", 64, "step_time_s", 1}};
  const std::string text = reports::scale_text(scale, study::compare(scale.points, measured));
  CHECK_THAT(text, Contains("1.6000  +25.0 %"));
  CHECK_THAT(text, Contains("40.0 %    50.0 %  -20.0 %"));
  CHECK_THAT(text, Contains("measured values compared: 2, mean error 22.5 %, worst 25.0 %"));
  CHECK_THAT(text, Contains("measured values without a predicted point: 1 (tiny on 64 GPUs)\n"));
  CHECK_THAT(text, Contains("tiny, 8 GPUs: does not fit"));
}

TEST_CASE("measured values without a prediction are named by series and count") {
  const study::Scale scale{.points = {point_of(example_run())}};
  const std::vector<study::Measured> measured = {
      {"a", 8, "mfu", 1}, {"a", 8, "step_time_s", 1}, {"a", 16, "mfu", 1}, {"b", 4, "mfu", 1}};
  const std::string text = reports::scale_text(scale, study::compare(scale.points, measured));
  CHECK_THAT(text, Contains("without a predicted point: 4 (a on 8, 16; b on 4 GPUs)\n"));
}

TEST_CASE("a table without any step time is headed in seconds") {
  const study::Scale scale{.points = {infeasible_point()}};
  CHECK_THAT(reports::scale_text(scale, {}), Contains("  step s  "));
}

TEST_CASE("memory below a GiB is shown in MiB") {
  CHECK(reports::gib(Bytes(0)) == "0.00");
  CHECK(reports::gib(Bytes(1536.0 * (1 << 20))) == "1.50");
  CHECK(reports::gib(Bytes(130.0 * (1 << 20))) == "130.0 MiB");
  CHECK(reports::gib_text(Bytes(-130.0 * (1 << 20))) == "-130.0 MiB");
  CHECK(reports::gib_text(Bytes(1536.0 * (1 << 20))) == "1.50 GiB");
}

TEST_CASE("cost and energy of a step are shown where the cluster tells price and power") {
  result::Run run = example_run();
  const std::vector<study::Point> without = {point_of(run)};
  CHECK_THAT(reports::runs_text(without), !Contains("USD") && !Contains("kWh"));
  run.cost = Dollars(0.0125), run.energy = Joules(7.2e6);
  std::vector<study::Point> points = {point_of(run)};
  CHECK_THAT(reports::runs_text(points),
             Contains("\ncost        0.0125 USD per step\nenergy      2 kWh per step\n"));
  run.series = "other", run.energy.reset();
  points.push_back(point_of(run));
  points.push_back(infeasible_point("big"));
  const std::string several = reports::runs_text(points);
  CHECK_THAT(several, Contains("USD per step") && Contains("0.0125"));
  CHECK_THAT(several, Contains("kWh per step"));
  const std::string table = reports::scale_text({.points = points}, {});
  CHECK_THAT(table, Contains("USD/step  kWh/step\n"));
  CHECK_THAT(table, Contains("  0.0125         2\n"));
}

TEST_CASE("a collective table counts like nccl-tests: bytes, microseconds, GB/s") {
  const std::vector<CollectiveTime> rows = {{Bytes(1073741824), Seconds(0.0429),
                                             BytesPerSecond(25.02e9), BytesPerSecond(49.27e9),
                                             "ring", "Simple"}};
  const std::string text = reports::collective_text("all-reduce", rows);
  CHECK_THAT(text,
             Contains("1073741824   42900.00         25.02         49.27  ring       Simple"));
}

TEST_CASE("an explanation shows the rows of the profile that a term names, wildcards too") {
  cost::Profile profile;
  const auto number = [](double value) {
    return cost::Number{value, value, value, cost::Factor::gemm, {}};
  };
  profile.numbers = {{"gemm.scale", number(0.9)},
                     {"gemm.tile_m", number(128)},
                     {"hbm.bandwidth_Bps", number(3e12)},
                     {"host.step_s", number(0.1)}};
  const reports::Explanation explanation = reports::explain_step_time(example_run(), profile);
  REQUIRE(explanation.calibration.size() == 3);
  CHECK(explanation.calibration[0].key == "gemm.scale");
  CHECK(explanation.calibration[2].key == "hbm.bandwidth_Bps");
  const std::string text = reports::explanation_text(point_of(example_run()), explanation);
  CHECK_THAT(text, Contains("  forward              1.3000   65.0 %  M11"));
}

TEST_CASE("CSV quotes what needs it and leaves unknown cells empty") {
  result::Run run = example_run();
  run.scenario = "a \"b\", c", run.has_interval = false;
  const std::vector<study::Point> points = {point_of(run), infeasible_point()};
  const std::string text = reports::points_csv(points);
  CHECK_THAT(text, Contains("\n\"a \"\"b\"\", c\",,4,0123456789abcdef,"));
  CHECK_THAT(text, Contains(",2,,,0.3333333333333333,0.4,,"));
  CHECK_THAT(text, Contains(",does not fit\n"));
  for (std::size_t at = 0, line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n', at);
    const std::string row = text.substr(at, end - at);
    const long quoted_comma = line == 1 ? 1 : 0;
    CHECK(std::ranges::count(row, ',') - quoted_comma == 25);
    at = end + 1;
  }
}

TEST_CASE("an error that rounds to nothing has no minus sign") {
  CHECK(reports::signed_percent(-0.0001) == "+0.0 %");
  CHECK(reports::signed_percent(-0.001) == "-0.1 %");
}
