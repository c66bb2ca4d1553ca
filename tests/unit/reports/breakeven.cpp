// SPDX-License-Identifier: Apache-2.0
#include "reports/breakeven.hpp"

#include <catch2/catch.hpp>

using namespace scapesim;

namespace {

study::BreakEvenStudy study_of(int gpus, double ratio) {
  study::BreakEven row;
  row.series = "other";
  row.outcome = result::Run();
  row.network.samples = {{1e9, ratio}};
  study::BreakEvenStudy study;
  study.baseline = "dense";
  study.gpus = gpus;
  study.rows = {row};
  return study;
}

}  // namespace

TEST_CASE("break-even on one GPU says GPU") {
  CHECK_THAT(reports::breakeven_text(study_of(1, 1)), Catch::Contains(", 1 GPU, "));
  CHECK_THAT(reports::breakeven_text(study_of(2, 1)), Catch::Contains(", 2 GPUs, "));
}

TEST_CASE("break-even calls a tie level, in text and JSON") {
  for (const auto& [ratio, word] :
       {std::pair(0.9995, "level"), std::pair(0.9, "always"), std::pair(1.1, "never")}) {
    CHECK_THAT(reports::breakeven_text(study_of(2, ratio)), Catch::Contains(word));
    CHECK_THAT(reports::breakeven_json(study_of(2, ratio)),
               Catch::Contains("\"verdict\": \"" + std::string(word) + "\""));
  }
}
