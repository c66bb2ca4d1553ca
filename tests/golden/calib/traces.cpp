// SPDX-License-Identifier: Apache-2.0
// PyTorch profiler traces and Nsight Systems databases.
#include <algorithm>
#include <catch2/catch.hpp>

#include "calib/import_kernels.hpp"
#include "support.hpp"

using namespace scapesim;
using namespace scapesim::calib;
using Catch::Contains;
using graph::CollectiveKind;

namespace {

const KernelSample& kernel(const Observations& found, std::string_view part) {
  const auto has = [&](const KernelSample& sample) {
    return sample.name.find(part) != std::string::npos;
  };
  const auto at = std::ranges::find_if(found.kernels, has);
  REQUIRE(at != found.kernels.end());
  return *at;
}

}  // namespace

TEST_CASE("NCCL kernels find their collective on themselves, by either id, or around the launch") {
  const Observations found = import_fixture("step.kineto.json");
  CHECK(found.format == "kineto");
  REQUIRE(found.collectives.size() == 4);
  const auto is = [&](std::size_t i, CollectiveKind kind, double bytes, int ranks, double us) {
    const CollectiveSample& sample = found.collectives[i];
    CHECK(sample.kind == kind);
    CHECK(sample.size.si() == bytes);  // the larger of in and out
    CHECK(sample.ranks == ranks);
    CHECK(sample.time.si() == Approx(us * 1e-6));
    CHECK(sample.in_training);
    CHECK(sample.algorithm.empty());  // the kernel's name tells another variant's
  };
  is(0, CollectiveKind::all_reduce, 2 * 1048576, 8, 400);
  is(1, CollectiveKind::all_gather, 4 * 8192, 8, 100);
  is(2, CollectiveKind::reduce_scatter, 2 * 8192, 8, 50);
  is(3, CollectiveKind::all_to_all, 4 * 4096, 4, 60);
  CHECK(found.collectives[0].datatype == "bfloat16");
}

TEST_CASE("NCCL kernels without a usable record, and events without time, are counted") {
  const Observations found = import_fixture("step.kineto.json");
  CHECK(found.unparsed.count == 4);  // no record, a barrier, a copy in no time, no duration
}

TEST_CASE("kernels are summed by name and classed by documented parts of it") {
  const Observations found = import_fixture("step.kineto.json");
  CHECK(kernel(found, "AllReduce_Sum_bf16").kind == KernelClass::nccl);
  CHECK(kernel(found, "flash_fwd").kind == KernelClass::attention);  // though it says cutlass
  CHECK(kernel(found, "nvjet").kind == KernelClass::gemm);
  const KernelSample& pass = kernel(found, "elementwise");
  CHECK(pass.kind == KernelClass::pass);
  CHECK(pass.count == 3);
  CHECK(pass.total.si() == Approx(90e-6));
  CHECK(pass.median.si() == Approx(20e-6));
  CHECK(kernel(found, "my_kernel").kind == KernelClass::other);
}

TEST_CASE("GEMM shapes come from the operator, times from all its kernels") {
  const Observations found = import_fixture("step.kineto.json");
  REQUIRE(found.gemms.size() == 2);
  CHECK(found.gemms[0].m == 4096);
  CHECK(found.gemms[0].n == 2048);
  CHECK(found.gemms[0].k == 1024);
  CHECK(found.gemms[0].datatype == "bfloat16");
  CHECK(found.gemms[0].time.si() == Approx(320e-6));
  CHECK(found.gemms[1].m == 256);  // addmm: the bias comes first
  CHECK(found.gemms[1].n == 512);
}

TEST_CASE("overlap is the time in which NCCL and other kernels run on one GPU") {
  const Observations found = import_fixture("step.kineto.json");
  REQUIRE(found.overlaps.size() == 2);
  const OverlapSample& gpu = found.overlaps[0];
  // Collectives of 400, 100, 50, 60, 10, 10; kernels of 300 (200 of it in the first collective),
  // 20 and 30 (beside none), 90, 10, 20, 1.
  CHECK(gpu.communication.si() == Approx(630e-6));
  CHECK(gpu.compute.si() == Approx(471e-6));
  CHECK(gpu.both.si() == Approx(200e-6));
  CHECK(gpu.span.si() == Approx(1201e-6));
  CHECK(found.overlaps[1].communication == Seconds(0));
}

TEST_CASE("profiler steps, copies and the machine are read") {
  const Observations found = import_fixture("step.kineto.json");
  REQUIRE(found.steps.size() == 1);
  CHECK(found.steps[0].iteration == 7);
  CHECK(found.steps[0].step_time->si() == Approx(5000.5e-6));
  CHECK(found.steps[0].gpus == 8);
  REQUIRE(found.copies.size() == 1);
  CHECK(found.copies[0].rate.si() == Approx(50e9));
  CHECK(found.machine.gpu_names == std::vector<std::string>{"NVIDIA H100 80GB HBM3"});
}

TEST_CASE("a compressed trace reads as the plain one") {
  const std::string packed = gzip(fixture("step.kineto.json"));
  const Observations found = import_bytes(packed, "step.json.gz");
  CHECK(found.collectives.size() == 4);
  const std::string two = gzip("{\"traceEvents\": [") + gzip("]}");
  CHECK_THAT(refusal(two), Contains("no GPU kernel"));  // two members are one text
}

TEST_CASE("a damaged compressed trace is refused with the byte") {
  std::string packed = gzip(fixture("step.kineto.json"));
  CHECK_THAT(refusal(packed.substr(0, packed.size() / 2)), Contains("ends too early"));
  packed[packed.size() / 2] = static_cast<char>(~packed[packed.size() / 2]);
  CHECK_THAT(refusal(packed), Contains("gzip") || Contains("not valid JSON"));
}

TEST_CASE("JSON that is cut off is refused with line and column") {
  CHECK_THAT(refusal("{\"traceEvents\": [\n {\"ph\": \"X\"", "t.json"),
             Contains("t.json:2:") && Contains("cut off"));
}

TEST_CASE("kernels of an Nsight Systems database are classed by their full names") {
  const Observations found = import_bytes(database("nsys.sql"), "report.sqlite");
  CHECK(found.format == "nsys");
  const KernelSample& gemm = kernel(found, "Kernel");
  CHECK(gemm.kind == KernelClass::gemm);  // the short name tells nothing
  CHECK(gemm.count == 2);
  CHECK(gemm.total.si() == Approx(6e-6));
  CHECK(gemm.median.si() == Approx(3e-6));
  REQUIRE(found.overlaps.size() == 1);
  CHECK(found.overlaps[0].both.si() == Approx(2e-6));
  REQUIRE(found.copies.size() == 2);
  CHECK(found.copies[1].direction == CopyDirection::device_to_host);
  CHECK(found.copies[1].rate.si() == Approx(25e9));
  CHECK(found.machine.gpu_names == std::vector<std::string>{"NVIDIA GH200 120GB"});
  CHECK(found.unparsed.malformed == 2);
  CHECK(found.unparsed.count == 3);
}

TEST_CASE("an Nsight Systems database may lack tables and columns") {
  CHECK_THAT(refusal(database("nsys-empty.sql")), Contains("CUPTI_ACTIVITY_KIND_KERNEL"));
  const Observations old = import_bytes(database("nsys-old.sql"), "old.sqlite");
  REQUIRE(old.kernels.size() == 1);
  CHECK(old.kernels[0].kind == KernelClass::gemm);
}
