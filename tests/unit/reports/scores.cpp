// SPDX-License-Identifier: Apache-2.0
#include "reports/scores.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace scapesim;
using Catch::Matchers::Contains;

namespace {

/// Twelve rows with errors of 0 %, 10 %, ... and one that was predicted not to fit.
study::Scores scores_of_thirteen() {
  study::Scores scores{.name = "runs", .rows = {}, .scores = {}, .checks = {}};
  for (int i = 0; i < 12; ++i) {
    study::ScoredRow row;
    row.row = "r" + std::to_string(i);
    row.source = "a table, quoted";
    row.metric = "step_time_s";
    row.measured = 1;
    row.predicted = 1 + 0.1 * i;
    scores.rows.push_back(row);
  }
  study::ScoredRow none;
  none.row = "none";
  none.metric = "step_time_s";
  none.measured = 1;
  none.reason = "does not fit";
  scores.rows.push_back(none);
  scores.scores.push_back({.by = "all",
                           .name = "all",
                           .rows = 13,
                           .infeasible = 1,
                           .median = 0.5,
                           .mean = 0.5,
                           .p90 = 1,
                           .worst = 1.1,
                           .bias = 0.5,
                           .covered = {}});
  return scores;
}

}  // namespace

TEST_CASE("the text shows the rows with the largest errors, those that do not fit first") {
  const std::string text = reports::scores_text(scores_of_thirteen(), reports::ShownRows::worst);
  CHECK_THAT(text, Contains("the 10 rows with the largest errors") && Contains("no error budget"));
  CHECK(text.find("none") < text.find("r11"));
  CHECK(text.find("r11") < text.find("r10"));
  CHECK(text.find("r2 ") == std::string::npos);
  CHECK_THAT(reports::scores_text(scores_of_thirteen(), reports::ShownRows::all), Contains("r2 "));
  CHECK_THAT(reports::scores_text(scores_of_thirteen(), reports::ShownRows::none),
             !Contains("r11"));
}

TEST_CASE("JSON and CSV hold every row; what is not known is null or empty") {
  const std::string csv = reports::scores_csv(scores_of_thirteen());
  CHECK(std::ranges::count(csv, '\n') == 14);
  CHECK_THAT(csv, Contains("r1,\"a table, quoted\",,,,0,,step_time_s,1,1.1,,,"));
  const std::string json = reports::scores_json(scores_of_thirteen());
  CHECK_THAT(json, Contains("\"schema\": \"scapesim.scores/1\"") &&
                       Contains("\"predicted\": null") && Contains("\"in_interval\": null"));
}
