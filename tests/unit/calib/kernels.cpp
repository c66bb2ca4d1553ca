// SPDX-License-Identifier: Apache-2.0
// Kernel rates become numbers of a profile: [M83] GEMM, [M84] attention; and how rows are read.
#include <catch2/catch.hpp>
#include <filesystem>
#include <unistd.h>

#include "calib/hopper.hpp"
#include "calib/shipped.hpp"
#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;
using calib::AttentionRow;
using calib::GemmRow;

namespace {

namespace fs = std::filesystem;

fs::path data() { return data_folder() / "calib" / "data"; }

/// A file that lives as long as the object.
class Scratch {
 public:
  explicit Scratch(const std::string& text)
      : path_(fs::temp_directory_path() / ("scapesim-rows-" + std::to_string(getpid()) + ".csv")) {
    write_file(path_, text);
  }
  ~Scratch() { fs::remove(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

spec::Gpu hopper() {
  spec::Gpu gpu = round_gpu();
  gpu.peak_bf16 = FlopsPerSecond(989.4e12);
  gpu.peak_fp8 = FlopsPerSecond(1978.9e12);
  gpu.multiprocessors = 132;
  return gpu;
}

AttentionRow attention_row(const std::string& library, std::int64_t sequence, bool forward_only,
                           double rate) {
  return {.library = library,
          .head_dim = 128,
          .sequence = sequence,
          .forward_only = forward_only,
          .rate = FlopsPerSecond(rate)};
}

/// Rate of both passes together when backward runs at `ratio` of the forward rate.
double both_passes(double forward_rate, double ratio) {
  return 3.5 / (1 / forward_rate + 2.5 / (ratio * forward_rate));
}

}  // namespace

TEST_CASE("[M83] GEMM numbers are recovered from rates that they made") {
  cost::Profile truth = round_profile();
  set(truth, "hbm.bandwidth_Bps", 3.2e12);
  set(truth, "gemm.efficiency", 0.78);
  truth.numbers["gemm.efficiency_fp8"] = exactly(0.66, cost::Factor::gemm);
  set(truth, "gemm.k_half_B", 700);
  set(truth, "gemm.small_tile_efficiency", 0.9);
  set(truth, "hbm.launch_s", 3e-6);
  std::vector<GemmRow> rows = calib::gemm_rows(data() / "gemm_hopper.csv");
  for (GemmRow& row : rows) {
    const cost::KernelCosts costs(truth, hopper(), row.precision);
    row.rate = cost::flops_of(row.shape) / costs.time(row.shape);
  }
  cost::Profile fitted = round_profile();
  set(fitted, "hbm.bandwidth_Bps", 3.2e12);
  std::string report;
  calib::add_gemm(fitted, rows, report);
  for (const char* key : {"gemm.efficiency", "gemm.efficiency_fp8", "gemm.k_half_B",
                          "gemm.small_tile_efficiency", "hbm.launch_s"}) {
    INFO(key);
    // Where the fit stops: steps by finite differences of 1e-4 in the logarithm.
    CHECK(fitted.number(key) == Approx(truth.number(key)).epsilon(1e-3));
    const cost::Number& number = fitted.numbers.at(key);
    CHECK(number.low <= number.value);
    CHECK(number.value <= number.high);
  }
  CHECK_FALSE(report.empty());
}

TEST_CASE("[M84] the backward rate follows from rows of one and of both passes") {
  std::vector<AttentionRow> rows;
  for (const auto& [sequence, ratio] : {std::pair{1024, 0.7}, {2048, 0.8}, {4096, 0.95}}) {
    rows.push_back(attention_row("FlashAttention-2", sequence, true, 400e12));
    rows.push_back(attention_row("FlashAttention-2", sequence, false, both_passes(400e12, ratio)));
  }
  rows.push_back(attention_row("another", 1024, false, 1e12));  // no forward row to go with it
  cost::Profile profile = round_profile();
  std::string report;
  calib::add_attention(profile, rows, report);
  const cost::Number& ratio = profile.numbers.at("attention.backward_ratio");
  CHECK(ratio.value == Approx(0.8).epsilon(1e-12));
  CHECK(ratio.low == Approx(0.7).epsilon(1e-12));
  CHECK(ratio.high == Approx(0.95).epsilon(1e-12));
}

TEST_CASE("[M84] forward curves are the cuDNN rows over the peak, in order of sequence") {
  cost::Profile profile;
  std::string report;
  const auto rows = calib::attention_rows(data() / "attention_hopper.csv");
  calib::add_attention(profile, rows, report);
  for (const AttentionRow& row : rows) {
    if (row.library != "cuDNN 9" || !row.forward_only) continue;
    const cost::Curve& curve = profile.curve("attention.forward.d" + std::to_string(row.head_dim));
    CHECK(curve.at(static_cast<double>(row.sequence)) ==
          Approx(row.rate.si() / 989.4e12).epsilon(1e-12));
  }
  for (const auto& [key, curve] : profile.curves) {
    CHECK(curve.points.size() >= 3);
    for (std::size_t i = 1; i < curve.points.size(); ++i)
      CHECK(curve.points[i - 1][0] < curve.points[i][0]);
  }
}

TEST_CASE("shipped rows of kernels are read in full") {
  const auto gemm = calib::gemm_rows(data() / "gemm_hopper.csv");
  REQUIRE(gemm.size() == 26);
  CHECK(gemm.front().shape.m == 1024);
  CHECK(gemm.front().precision == spec::Precision::fp8);
  CHECK(gemm.front().rate.si() == Approx(274.1e12).epsilon(1e-12));
  CHECK(calib::attention_rows(data() / "attention_hopper.csv").size() > 30);
}

TEST_CASE("a row that cannot be understood is refused with its place") {
  const std::string header = "gpu,dtype,m,n,k,tflops,source\n";
  const Scratch unknown(header + "H100,bf61,1,1,1,10,x\nH100,bf16,0,1,1,-3,x\n");
  try {
    calib::gemm_rows(unknown.path());
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(error.problems().size() == 3);
    CHECK(error.problems()[0].place.line == 2);
    CHECK(error.problems()[1].place.line == 3);
  }
  CHECK_THROWS_AS(calib::gemm_rows("no-such-file.csv"), InputError);
}

TEST_CASE("rows of training runs keep the flags as run; a broken one is refused") {
  const std::string header =
      "model,micro_batch,strategy,distributed_optimizer,residual_offload,replica_offload,density,"
      "gpus,metric,value,source\n";
  const Scratch rows(header + "llama-1.8B,8,dense,1,0,0,1,4,computation_s,11,x\n" +
                     "llama-1.8B,8,scape,0,1,0,0.1,8,step_time_s,14,x\n");
  const auto read = calib::vista_rows(rows.path());
  REQUIRE(read.size() == 2);
  CHECK(read[0].distributed_optimizer);
  CHECK(read[0].value == 11);
  CHECK(read[1].strategy == "scape");
  CHECK(read[1].residual_offload);
  CHECK(read[1].density == 0.1);
  CHECK(read[1].gpus == 8);
  const Scratch broken(header + "llama-1.8B,8,scape,2,0,0,0.1,4,computation_s,not a number,x\n");
  CHECK_THROWS_AS(calib::vista_rows(broken.path()), InputError);
}

TEST_CASE("only dense runs reach the fits") {
  for (const calib::TrainingRun& run : calib::vista_dense_runs(data_folder()))
    CHECK(run.scenario.strategy.method == spec::Method::dense);
}
