// SPDX-License-Identifier: Apache-2.0
#include "sim/study/rows.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <unistd.h>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"

using namespace scapesim;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

/// A folder that goes away, with one table.
class Table {
 public:
  explicit Table(const std::string& text) { write("runs.csv", text); }
  ~Table() { fs::remove_all(folder_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  fs::path write(const std::string& name, const std::string& text) const {
    write_file(folder_ / name, text);
    return folder_ / name;
  }
  fs::path path() const { return folder_ / "runs.csv"; }

 private:
  static fs::path made() {
    const fs::path folder =
        fs::temp_directory_path() / ("scapesim-rows-" + std::to_string(getpid()));
    fs::create_directories(folder);
    return folder;
  }
  fs::path folder_ = made();
};

const std::string kHeader =
    "row,source,quality,metric,value,model.preset,cluster.preset,cluster.gpus,training.global_"
    "batch,"
    "training.micro_batch,strategy.sharding,calibration.profile\n";

std::string run(const std::string& name, const std::string& source, double value, int gpus) {
  return name + "," + source + ",exact,step_time_s," + std::to_string(value) +
         ",llama-1.8b,vista," + std::to_string(gpus) + ",1024,8,,gh200-vista-sockets\n";
}

std::string problems_of(const Table& table, const study::RowsOptions& options = {}) {
  try {
    study::score_rows(table.path(), options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("[M260] a score is the median, 90th percentile and bias of its rows' errors") {
  const Table first(kHeader + run("a", "x", 1, 8));
  const double predicted =
      *study::score_rows(first.path(), {.budget = {}, .interval_draws = 0}).rows[0].predicted;
  // Errors of -50 %, 0 %, +25 % and +100 %.
  const Table table(kHeader + run("a", "x", 2 * predicted, 8) + run("b", "x", predicted, 8) +
                    run("c", "y", predicted / 1.25, 8) + run("d", "y", predicted / 2, 8));
  const study::Scores scores = study::score_rows(table.path(), {.budget = {}, .interval_draws = 0});
  REQUIRE(scores.scores.size() == 3);  // all, source x, source y: one GPU, one method
  const study::Score& all = scores.scores[0];
  CHECK(all.rows == 4);
  CHECK(all.median == Approx(0.375).epsilon(1e-4));
  CHECK(all.mean == Approx(0.4375).epsilon(1e-4));
  CHECK(all.p90 == Approx(1).epsilon(1e-4));
  CHECK(all.worst == Approx(1).epsilon(1e-4));
  CHECK(all.bias == Approx(0.125).epsilon(1e-4));
  CHECK(scores.scores[1].name == "x");
  CHECK(scores.scores[1].bias == Approx(-0.25).epsilon(1e-4));
  CHECK(scores.passed);  // no budget, no limit
}

TEST_CASE("rows that are not exact stay out of the groups and have their own") {
  const Table table(kHeader + run("a", "x", 5, 8) +
                    "b,x,partial,step_time_s,1,llama-1.8b,vista,8,1024,8,,gh200-vista-sockets\n");
  const study::Scores scores = study::score_rows(table.path(), {.budget = {}, .interval_draws = 0});
  CHECK(scores.scores[0].rows == 1);
  REQUIRE(scores.scores.size() == 3);
  CHECK(scores.scores[2].by == "quality");
  CHECK(scores.scores[2].name == "partial");
}

TEST_CASE("rows are scored by scale, and say what their table knows of them") {
  std::string header = kHeader;
  header.insert(header.find('\n'), ",reason");
  const auto with_reason = [](std::string row, const std::string& reason) {
    row.insert(row.find('\n'), "," + reason);
    return row;
  };
  const Table table(header + with_reason(run("a", "x", 5, 8), "no steady step") +
                    with_reason(run("b", "x", 3, 64), ""));
  const study::Scores scores = study::score_rows(table.path(), {.budget = {}, .interval_draws = 0});
  CHECK(scores.rows[0].reason == "no steady step");
  CHECK_FALSE(scores.rows[1].reason.empty());
  std::vector<std::string> scales;
  for (const study::Score& score : scores.scores)
    if (score.by == "scale") scales.push_back(score.name);
  CHECK(scales == std::vector<std::string>{"9 to 64", "up to 8"});
}

TEST_CASE("[M423] ratios of rows at equal batch: an error that two rows share cancels") {
  const auto predicted = [](int gpus) {
    const Table table(kHeader + run("a", "x", 1, gpus));
    return *study::score_rows(table.path(), {.budget = {}, .interval_draws = 0}).rows[0].predicted;
  };
  const double four = predicted(4), eight = predicted(8);
  // Both 30 % off: the ratio is met. Another source makes no pair, nor does the same count.
  const Table met(kHeader + run("a", "x", 1.3 * four, 4) + run("b", "x", 1.3 * eight, 8) +
                  run("c", "y", 1, 8) + run("d", "y", 2, 8));
  const study::Scores scores = study::score_rows(met.path(), {.budget = {}, .interval_draws = 0});
  CHECK(scores.scaling.pairs == 1);
  CHECK(scores.scaling.median == Approx(0).margin(1e-4));  // decimals of the table
  const Table off(kHeader + run("a", "x", 1.25 * four, 4) + run("b", "x", eight, 8));
  CHECK(study::score_rows(off.path(), {.budget = {}, .interval_draws = 0}).scaling.median ==
        Approx(0.25).epsilon(1e-3));
}

TEST_CASE("a budget bounds statistics of groups, and what it bounds must exist") {
  const Table table(kHeader + run("a", "x", 1, 8));
  const fs::path budget = table.write(
      "budget.csv", "group,statistic,limit,why\nall,median,0.01,test\nall,infeasible,0.5,test\n");
  const study::Scores scores =
      study::score_rows(table.path(), {.budget = budget, .interval_draws = 0});
  REQUIRE(scores.checks.size() == 2);
  CHECK_FALSE(scores.checks[0].passed);
  CHECK(scores.checks[1].passed);
  CHECK_FALSE(scores.passed);
  table.write("budget.csv", "group,statistic,limit,why\ngpu=H1,medium,0.01,test\n");
  CHECK_THAT(problems_of(table, {.budget = budget, .interval_draws = 0}),
             Contains("budget.csv:2:1: group: no rows of this group") &&
                 Contains("\"medium\" is not a statistic (did you mean \"median\"?)"));
}

TEST_CASE("every fault of a table is told at its cell") {
  CHECK_THAT(problems_of(Table("metric,value,cluster.gpuss\nstep_time_s,1,8\n")),
             Contains("runs.csv:1:14: cluster.gpuss: neither a key of a scenario nor a column (did "
                      "you mean \"cluster.gpus\"?)"));
  CHECK_THAT(problems_of(Table("value,cluster.gpus\n1,8\n")),
             Contains("runs.csv:1:1: metric: missing column"));
  const std::string text = problems_of(
      Table(kHeader + "a,x,exact,step_time,-1,llama-1.8,vista,8,1024,8,,gh200-vista-sockets\n"));
  CHECK_THAT(text, Contains("\"step_time\" is not a metric (did you mean \"step_time_s\"?)"));
  CHECK_THAT(text, Contains("\"-1\" is not a number above 0"));
  CHECK_THAT(text, Contains("no model preset \"llama-1.8\" (did you mean \"llama-1.8b\"?)"));
  CHECK_THAT(problems_of(Table(kHeader)), Contains("no rows, the header alone"));
}

TEST_CASE("a row that is predicted not to fit counts as infeasible, with its reason") {
  const Table table(kHeader +
                    "a,x,exact,step_time_s,1,llama-70b,vista,8,1024,8,,gh200-vista-sockets\n");
  const study::Scores scores = study::score_rows(table.path(), {});
  CHECK(scores.scores[0].infeasible == 1);
  CHECK_THAT(scores.rows[0].reason, Contains("does not fit"));
}

TEST_CASE("rows carry the interval of their step time") {
  const Table table(kHeader + run("a", "x", 5, 8));
  const study::Scores scores = study::score_rows(table.path(), {});
  REQUIRE(scores.rows[0].low.has_value());
  CHECK(*scores.rows[0].low < *scores.rows[0].predicted);
  CHECK(*scores.rows[0].high > *scores.rows[0].predicted);
  CHECK(scores.scores[0].covered.has_value());
}
