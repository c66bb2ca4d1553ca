// SPDX-License-Identifier: Apache-2.0
// [M206] What the bench writes, `calibrate` reads: rows of made-up times become the numbers they
// were made from, measured, with date, machine and driver; the simulator uses the curves [M205].
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include "calib/calibrate.hpp"
#include "calib/import.hpp"
#include "kernels/bench/cases.hpp"
#include "kernels/bench/row.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

constexpr double kCopyRate = 3.2e12;
const bench::Provenance kProvenance = {"a-node", "made-up GPU", "580.1", "2026-11-29",
                                       "scapesim-bench 0.1.0"};

bench::Measured exactly(double seconds) {
  return {.samples = std::vector<double>(100, seconds), .repeat_spread = 0};
}

bench::Row row_of(std::string kind, std::string name, double bytes, double rate) {
  return {.kind = std::move(kind),
          .name = std::move(name),
          .measured = exactly(bytes / rate),
          .bytes = bytes,
          .copy_rate = kCopyRate};
}

/// Share of the copy rate that a kernel was made to reach.
double share_at(const bench::KernelCase& one) {
  return one.elements >= std::size_t{1} << 22U ? 0.9 : 0.3;
}

/// All families that calibrate uses, and some rows that it must not use.
std::string bench_file() {
  std::string text = bench::environment_line({{"NCCL_DEBUG", "INFO"}, {"SECRET", "x"}},
                                             {{"cuda_runtime", "13000"}}, kProvenance);
  const auto add = [&](const bench::Row& row) { text += bench::line_of(row, kProvenance); };
  add(row_of("memory", "copy", 1U << 30U, kCopyRate));
  add(row_of("memory", "copy", 1U << 20U, 9e12));  // in the cache
  add(row_of("copy", "host-to-device", 1U << 30U, 375e9));
  add(row_of("copy", "device-to-host", 1U << 30U, 297e9));
  for (const char* beside : {"reverse copy", "device memory"}) {
    bench::Row both = row_of("copy", "host-to-device", 1U << 30U, 100e9);
    both.texts["beside"] = beside;
    add(both);
  }
  for (const bench::KernelCase& one : bench::kernel_cases(bench::Extent::full)) {
    bench::Row row = row_of("kernel", std::string(name_of(one.kernel)), counted_bytes(one),
                            share_at(one) * kCopyRate);
    row.texts["shape"] = shape_of(one);
    add(row);
  }
  bench::Row overlapped = row_of("collective", "all-reduce", 1e9, 10e9);
  overlapped.numbers = {{"ranks", 8}, {"nodes", 1}};
  overlapped.texts = {{"beside", "matrix products"}, {"dtype", "float"}};
  add(overlapped);
  return text;
}

calib::Observations observations() {
  const auto path = std::filesystem::temp_directory_path() /
                    ("scapesim-bench-" + std::to_string(::getpid()) + ".jsonl");
  std::filesystem::remove(path);
  bench::RowFile file(path);
  file.write(bench_file());
  const calib::Observations read = calib::import_file(path.string());
  std::filesystem::remove(path);
  return read;
}

calib::Calibration calibrated(const calib::Observations& file) {
  return calib::calibrate({.base = round_profile(),
                           .id = "made-up",
                           .observations = {file},
                           .logs = {},
                           .cluster = {}});
}

}  // namespace

TEST_CASE("every line of the bench is read; overlapped ones are kept out of the samples") {
  const calib::Observations file = observations();
  CHECK(file.format == "bench");
  CHECK(file.unparsed.count == 0);
  CHECK(file.copies.size() == 4);
  CHECK(file.collectives.empty());
  CHECK(file.kernels.size() == bench::kernel_cases(bench::Extent::full).size());
  CHECK(file.environment == std::map<std::string, std::string>{{"NCCL_DEBUG", "INFO"}});
  CHECK(file.provenance.at("driver") == "580.1");
}

TEST_CASE("[M206] calibrate gives back the rates and curves that the rows were made from") {
  const cost::Profile profile = calibrated(observations()).profile;
  CHECK(profile.number("hbm.bandwidth_Bps") == Approx(kCopyRate));
  CHECK(profile.number("copy.h2d_Bps") == Approx(375e9));
  CHECK(profile.number("copy.d2h_Bps") == Approx(297e9));
  for (const char* key :
       {"kernel.local_pass", "kernel.select", "kernel.update", "kernel.write_back"}) {
    INFO(key);
    const cost::Curve& curve = profile.curve(key);
    CHECK(curve.points.size() == 8);  // sizes
    CHECK(curve.at(curve.points.front()[0]) == Approx(0.3));
    CHECK(curve.at(curve.points.back()[0]) == Approx(0.9));
    CHECK(curve.origin.kind == cost::Provenance::measured);
    for (const char* word : {"a-node", "580.1", "2026-11-29", "made-up GPU"})
      CHECK_THAT(curve.origin.source, Catch::Matchers::Contains(word));
  }
}

TEST_CASE("[M171] matrix products of the bench give the GEMM efficiency back") {
  cost::Profile made = round_profile();
  set(made, "gemm.efficiency", 0.7);
  const cost::KernelCosts costs(made, round_gpu(), spec::Precision::bf16);
  std::string text;
  for (const std::int64_t m : {2048, 4096, 8192})
    for (const std::int64_t n : {1024, 4096, 11008})
      for (const std::int64_t k : {4096, 8192}) {
        bench::Row row{.kind = "gemm",
                       .name = "made up",
                       .measured = exactly(costs.time(cost::Gemm{.m = m, .n = n, .k = k}).si()),
                       .bytes = {},
                       .copy_rate = {}};
        row.numbers = {{"m", static_cast<double>(m)},
                       {"n", static_cast<double>(n)},
                       {"k", static_cast<double>(k)}};
        row.texts = {{"dtype", "bf16"}, {"pass", "forward"}};
        text += bench::line_of(row, kProvenance);
        row.texts["beside"] = "all-reduce";  // slower, and no GEMM's own time
        row.measured = exactly(1);
        text += bench::line_of(row, kProvenance);
      }
  const calib::Observations file = calib::import_bytes(text, "gemm.jsonl");
  REQUIRE(file.gemms.size() == 18);
  const calib::Calibration result =
      calib::calibrate({.base = round_profile(),
                        .id = "made-up",
                        .observations = {file},
                        .logs = {},
                        .cluster = scenario_of(gpt({2, 64, 2, 128, 101}), 1).cluster});
  CHECK(result.profile.number("gemm.efficiency") == Approx(0.7).epsilon(0.01));
  CHECK(result.profile.numbers.at("gemm.efficiency").origin.kind == cost::Provenance::measured);
}

TEST_CASE(
    "[M205] a fused pass uses its curve where the profile has one, else the bandwidth alone") {
  cost::Profile profile = round_profile();
  const cost::Pass pass{.traffic = Bytes(1e9), .launches = 4, .kernel = "select"};
  const auto time = [&] {
    return cost::KernelCosts(profile, round_gpu(), spec::Precision::bf16).time(pass).si();
  };
  set(profile, "hbm.launch_s", 1e-6);
  CHECK(time() == Approx(1e-3 + 4e-6));
  profile.curves["kernel.select"] = {.x = "traffic_B",
                                     .y = "share_of_hbm_bandwidth",
                                     .points = {{1e6, 0.25}, {1e9, 0.5}},
                                     .factor = cost::Factor::hbm,
                                     .origin = {cost::Provenance::measured, "made up for a test"}};
  CHECK(time() == Approx(2e-3));
  set(profile, "hbm.launch_s", 1e-3);  // never less than the launches
  CHECK(time() == Approx(4e-3));
  const cost::Pass other{.traffic = Bytes(1e9), .launches = 1, .kernel = "update"};
  CHECK(cost::KernelCosts(profile, round_gpu(), spec::Precision::bf16).time(other).si() ==
        Approx(2e-3));
}

TEST_CASE("[M205] curves slow SCAPE's fused passes down, and no unfused one") {
  const auto passes = [](const cost::Profile& profile, spec::Kernels kernels) {
    spec::Scenario scenario = scape_scenario(gpt({2, 64, 2, 128, 101}), 4, 0.1);
    scenario.strategy.sharding = spec::Sharding::zero1;
    scenario.strategy.kernels = kernels;
    const auto workload = workload::workload_of(scenario.model, scenario.training);
    const cost::KernelCosts costs(profile, scenario.cluster.gpu, scenario.training.precision);
    const strategy::Context context = strategy::context_of(scenario, workload, profile, costs);
    strategy::Program program;
    program.operations.emplace_back();
    strategy::method_of(spec::Method::scape).make(context)->step_end(program, {0});
    std::map<std::string, graph::Operation> by_name;
    for (const graph::Operation& operation : program.operations)
      by_name.emplace(operation.name, operation);
    return by_name;
  };
  const cost::Profile plain = round_profile();
  cost::Profile curved = plain;
  for (const char* name : {"local_pass", "select", "update", "write_back"})
    curved.curves[std::string("kernel.") + name] = {
        .x = "traffic_B",
        .y = "share_of_hbm_bandwidth",
        .points = {{1e3, 0.5}, {1e9, 0.5}},
        .factor = cost::Factor::hbm,
        .origin = {cost::Provenance::measured, "made up for a test"}};
  const auto before = passes(plain, spec::Kernels::fused);
  const auto after = passes(curved, spec::Kernels::fused);
  for (const char* name : {"accumulate, residual, gather", "top-k threshold and mask",
                           "scatter and adams update", "replica write-back"}) {
    INFO(name);
    CHECK(after.at(name).duration.si() == Approx(2 * before.at(name).duration.si()));
    CHECK_THAT(after.at(name).calibration, Catch::Matchers::Contains("kernel."));
  }
  const auto unfused = passes(plain, spec::Kernels::unfused);
  for (const auto& [name, operation] : passes(curved, spec::Kernels::unfused))
    CHECK(operation.duration.si() == unfused.at(name).duration.si());
}

TEST_CASE("[M51] bytes that the bench counts are those that the simulator charges") {
  spec::Scenario scenario = scape_scenario(gpt({2, 64, 2, 128, 101}), 4, 0.1);
  scenario.strategy.sharding = spec::Sharding::zero1;
  const Rig rig(scenario);
  const strategy::Program program = rig.program();
  const double n = rig.parameters();
  // The real density: norms are selected whole, and every tensor's count is rounded down.
  const double density = calls_named(program, "payload all-reduce")[0].bytes.si() / 4 / n;
  const auto counted = [&](bench::Kernel kernel) {
    return bench::counted_bytes(
        {kernel, static_cast<std::size_t>(n), density, bench::MaskKind::random});
  };
  CHECK(traffic_of(program, "accumulate, residual, gather") ==
        Approx(counted(bench::Kernel::local_pass)).epsilon(1e-4));  // the mask's last byte
  CHECK(traffic_of(program, "replica write-back") ==
        Approx(counted(bench::Kernel::write_back)).epsilon(1e-4));
}
