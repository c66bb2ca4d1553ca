// SPDX-License-Identifier: Apache-2.0
// The profiles that ship are what the fits make of the shipped rows, and of the dense ones only:
// [M80] ranges, [M82] transport, [M85] computation.
#include "calib/shipped.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <unistd.h>

#include "calib/fit.hpp"
#include "calib/rows.hpp"
#include "sim/base/error.hpp"
#include "sim/base/file.hpp"

using namespace scapesim;

namespace {

namespace fs = std::filesystem;

/// A copy of the data that profiles are built from, removed afterwards.
class DataCopy {
 public:
  DataCopy()
      : root_(fs::temp_directory_path() / ("scapesim-calib-test-" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "calib");
    for (const char* folder : {"scenarios", "calib/data"})
      fs::copy(data_folder() / folder, root_ / folder, fs::copy_options::recursive);
  }
  ~DataCopy() { fs::remove_all(root_); }
  DataCopy(const DataCopy&) = delete;
  DataCopy& operator=(const DataCopy&) = delete;
  const fs::path& root() const { return root_; }
  fs::path rows() const { return root_ / "calib" / "data" / "vista_scape.csv"; }

 private:
  fs::path root_;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

/// Whether a row's value may enter a profile.
bool may_enter(const std::vector<std::string>& cells) {
  return cells[2] == "dense" && (cells[8] == "computation_s" || cells[8] == "communication_s");
}

/// The rows with the value of every other row than those that may enter multiplied by ten.
struct Spoiled {
  std::string text;
  int rows = 0;
};
Spoiled spoiled(const std::string& text) {
  Spoiled result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::vector<std::string> cells = cells_of(line);
    if (line.starts_with("llama") && !may_enter(cells)) {
      const std::string before = "," + cells[8] + ",";
      const std::size_t value = line.find(before) + before.size();
      line.insert(value + cells[9].size(), "e1");
      ++result.rows;
    }
    result.text += line + "\n";
  }
  return result;
}

std::vector<std::string> texts_of(const calib::ShippedProfiles& shipped) {
  std::vector<std::string> texts;
  for (const cost::Profile& profile : shipped.profiles)
    texts.push_back(cost::profile_json(profile));
  return texts;
}

cost::Profile known_profile() {
  cost::Profile profile = cost::load_profile("gh200-vista-sockets", {});
  profile.numbers.at("network.transport_cap_Bps").value = 5e9;
  profile.numbers.at("network.hop_latency_s").value = 2e-4;
  profile.numbers.at("gemm.scale").value = 0.8;
  profile.numbers.at("host.step_s").value = 0.05;
  return profile;
}

/// The shipped runs with the times that a known profile gives them.
std::vector<calib::TrainingRun> made_up_runs(const cost::Profile& truth) {
  std::vector<calib::TrainingRun> runs = calib::vista_dense_runs(data_folder());
  for (calib::TrainingRun& run : runs) {
    run.computation = calib::computation(run, truth);
    const double n = run.scenario.model.hidden == 2560 ? 1'831'201'280 : 513'590'784;
    const double ranks = run.scenario.cluster.gpus;
    const double bytes = run.scenario.strategy.sharding == spec::Sharding::zero1 ? 6 : 8;
    run.communication = Seconds(bytes * n * (ranks - 1) / ranks / 5e9 + 2 * (ranks - 1) * 2e-4);
  }
  return runs;
}

}  // namespace

TEST_CASE("the shipped profiles are, byte for byte, what the shipped rows give") {
  const calib::ShippedProfiles shipped = calib::build_shipped_profiles(data_folder());
  REQUIRE(shipped.profiles.size() == 17);
  for (const cost::Profile& profile : shipped.profiles) {
    INFO(profile.id);
    const fs::path file = data_folder() / "calib" / "profiles" / (profile.id + ".json");
    CHECK(cost::profile_json(profile) == read_file(file, "shipped profile"));
  }
}

TEST_CASE("nothing but dense computation and communication on Vista enters a profile") {
  const DataCopy copy;
  const auto before = texts_of(calib::build_shipped_profiles(copy.root()));
  const Spoiled others = spoiled(read_file(copy.rows(), "rows"));
  REQUIRE(others.rows >= 30);  // 15 SCAPE step times, 20 dense ones, 6 of memory
  write_file(copy.rows(), others.text);
  CHECK(texts_of(calib::build_shipped_profiles(copy.root())) == before);
}

TEST_CASE("a dense computation that changes does change the profile") {
  const DataCopy copy;
  const auto before = texts_of(calib::build_shipped_profiles(copy.root()));
  std::string text = read_file(copy.rows(), "rows");
  const std::string row = "llama-1.8B,8,dense,0,0,0,1,4,computation_s,11.001";
  REQUIRE(text.find(row) != std::string::npos);
  text.replace(text.find(row), row.size(), row.substr(0, row.size() - 6) + "12.001");
  write_file(copy.rows(), text);
  CHECK(texts_of(calib::build_shipped_profiles(copy.root())) != before);
}

TEST_CASE("[M82] transport: 3.62 GB/s within 1 % and 1.1 ms per hop within 10 %, as shipped") {
  const cost::Profile profile = cost::load_profile("gh200-vista-sockets", {});
  CHECK(profile.number("network.transport_cap_Bps") == Approx(3.62e9).epsilon(0.01));
  CHECK(profile.number("network.hop_latency_s") == Approx(1.1e-3).epsilon(0.10));
}

TEST_CASE("[M82] [M85] transport, GEMM scale and host term are recovered from times they made") {
  const cost::Profile truth = known_profile();
  const std::vector<calib::TrainingRun> runs = made_up_runs(truth);
  cost::Profile fitted = cost::load_profile("gh200-datasheet", {});
  for (const char* key : {"hbm.bandwidth_Bps", "hbm.launch_s", "gemm.efficiency"})
    fitted.numbers.at(key) = truth.numbers.at(key);
  std::string report;
  calib::fit_transport(fitted, runs, {cost::Provenance::published, "made up"}, report);
  calib::fit_computation(fitted, runs, {cost::Provenance::published, "made up"}, report);
  CHECK(fitted.number("network.transport_cap_Bps") == Approx(5e9).epsilon(1e-9));
  CHECK(fitted.number("network.hop_latency_s") == Approx(2e-4).epsilon(1e-9));
  // Where the fit stops: steps by finite differences of 1e-4 in the logarithm.
  CHECK(fitted.number("gemm.scale") == Approx(0.8).epsilon(1e-4));
  CHECK(fitted.number("host.step_s") == Approx(0.05).epsilon(1e-3));
  // The smallest bulk collective: parameters of the smaller model in bf16.
  CHECK(fitted.number("network.smallest_fitted_B") == 2 * 513'590'784.0);
}

TEST_CASE("[M85] logs of another job are refused instead of fitted") {
  const std::vector<calib::TrainingRun> sound = made_up_runs(known_profile());
  for (const double times : {1e-4, 300.0, 1e9}) {
    std::vector<calib::TrainingRun> runs = sound;
    for (calib::TrainingRun& run : runs) run.computation *= times;
    cost::Profile fitted = known_profile();
    std::string report, told;
    try {
      calib::fit_computation(fitted, runs, {cost::Provenance::imported, "run4.log"}, report);
    } catch (const InputError& error) {
      told = error.what();
    }
    INFO(times);
    CHECK(told.find("gemm.scale") != std::string::npos);
    CHECK(told.find("run4.log") != std::string::npos);
  }
}

TEST_CASE("[M82] a latency that the rows would make negative is held at zero") {
  std::vector<calib::TrainingRun> runs = calib::vista_dense_runs(data_folder());
  for (calib::TrainingRun& run : runs)
    run.communication -= Seconds(0.005 * (run.scenario.cluster.gpus - 1));
  cost::Profile fitted = cost::load_profile("gh200-datasheet", {});
  std::string report;
  calib::fit_transport(fitted, runs, {cost::Provenance::published, "made up"}, report);
  CHECK(fitted.number("network.hop_latency_s") == 0);
  CHECK(fitted.number("network.transport_cap_Bps") > 0);
}

TEST_CASE("[M80] a fitted range is Student's 90 % of the standard error on either side") {
  std::vector<calib::RingRow> rows;
  for (const calib::TrainingRun& run : calib::vista_dense_runs(data_folder())) {
    const double n = run.scenario.model.hidden == 2560 ? 1'831'201'280 : 513'590'784;
    const int ranks = run.scenario.cluster.gpus;
    const double bytes = run.scenario.strategy.sharding == spec::Sharding::zero1 ? 6 : 8;
    rows.push_back({Bytes(bytes * n * (ranks - 1) / ranks), 2 * (ranks - 1), run.communication});
  }
  const calib::Fit fit = calib::fit_ring(rows);
  REQUIRE(fit.rows == 20);
  const cost::Profile profile = cost::load_profile("gh200-vista-sockets", {});
  const cost::Number& alpha = profile.numbers.at("network.hop_latency_s");
  CHECK(alpha.value == Approx(fit.value[1]).epsilon(1e-9));
  constexpr double kStudent18 = 1.734;  // 95 % quantile at 18 degrees of freedom
  CHECK((alpha.high - alpha.value) / fit.standard_error[1] == Approx(kStudent18).epsilon(0.01));
  CHECK((alpha.value - alpha.low) / fit.standard_error[1] == Approx(kStudent18).epsilon(0.01));
}

TEST_CASE("every dense Vista run with both times is fitted: two models, two methods, five counts") {
  const auto runs = calib::vista_dense_runs(data_folder());
  CHECK(runs.size() == 20);
  for (const calib::TrainingRun& run : runs) {
    CHECK(run.scenario.strategy.method == spec::Method::dense);
    CHECK(run.computation > Seconds(0));
    CHECK(run.communication > Seconds(0));
  }
}
