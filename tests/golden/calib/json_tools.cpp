// SPDX-License-Identifier: Apache-2.0
// JSON of nccl-tests, nvbandwidth, NVBench and our own bench.
#include <catch2/catch.hpp>

#include "support.hpp"

using namespace scapesim;
using namespace scapesim::calib;
using Catch::Contains;
using graph::CollectiveKind;

TEST_CASE("nccl-tests JSON lists the first rank of a process only") {
  const Observations found = import_fixture("all-gather.nccl.json");
  CHECK(found.format == "nccl-tests-json");
  REQUIRE(found.collectives.size() == 2);
  const CollectiveSample& row = found.collectives[0];
  CHECK(row.kind == CollectiveKind::all_gather);
  CHECK(row.ranks == 8);
  CHECK(row.nodes == 2);
  CHECK(row.ranks_per_node == 4);
  CHECK(row.size.si() == 1048576);
  CHECK(row.time.si() == Approx(40.125e-6));
  CHECK(row.in_place->si() == Approx(41.5e-6));
  CHECK(row.datatype == "bfloat16");
  CHECK(found.warnings.empty());
}

TEST_CASE(
    "nccl-tests JSON may have null out of place, wrong results and times that are no number") {
  const Observations found = import_fixture("all-gather.nccl.json");
  CHECK(found.collectives[1].time.si() == Approx(120e-6));
  CHECK(found.unparsed.malformed == 1);  // 3 wrong elements out of place, "nan" in place
}

TEST_CASE("of the environment in nccl-tests JSON only NCCL_* and CUDA_* are kept") {
  const Observations found = import_fixture("all-gather.nccl.json");
  CHECK(found.environment == std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", "0,1,2,3"},
                                                                {"NCCL_ALGO", "Tree"},
                                                                {"NCCL_PROTO", "^LL128"}});
  CHECK(found.collectives[0].algorithm == "tree");
  CHECK(found.collectives[0].protocol.empty());  // an exclusion forces nothing
}

TEST_CASE("nccl-tests JSON with -C gives the time by the bandwidth; all ranks may be listed") {
  const Observations found = import_fixture("cpu-time.nccl.json");
  REQUIRE(found.collectives.size() == 1);
  CHECK(found.collectives[0].ranks == 4);
  CHECK(found.collectives[0].time.si() == Approx(500e-6));
}

TEST_CASE("a failed nccl-tests run has no results and says so") {
  CHECK_THAT(refusal(fixture("failed.nccl.json")), Contains("no results"));
}

TEST_CASE("nvbandwidth matrices become one rate per cell, with what ran beside") {
  const Observations found = import_fixture("h200.nvbandwidth.json");
  CHECK(found.format == "nvbandwidth");
  const auto rates = [&](const std::string& name) {
    std::vector<double> list;
    for (const CopySample& copy : found.copies)
      if (copy.name == name) list.push_back(copy.rate.si() / 1e9);
    return list;
  };
  using Rates = std::vector<double>;
  CHECK(rates("host_to_device_memcpy_ce") == Rates{55.25, 55.5});
  CHECK(rates("device_to_host_bidirectional_memcpy_ce") == Rates{40.5});
  CHECK(rates("device_to_device_memcpy_read_ce") == Rates{390.25, 391});
  CHECK(rates("device_local_copy") == Rates{1950.5, 1960});
  for (const CopySample& copy : found.copies) {
    if (copy.name == "device_to_host_bidirectional_memcpy_ce") {
      CHECK(copy.direction == CopyDirection::device_to_host);
      CHECK(copy.beside == Beside::reverse_copy);
    }
    if (copy.name == "all_to_host_memcpy_ce") CHECK(copy.beside == Beside::other_gpus);
  }
  CHECK(found.machine.gpu_names == std::vector<std::string>{"NVIDIA H200"});
}

TEST_CASE("two-way tests between GPUs leave their sum out") {
  const Observations found = import_fixture("h200.nvbandwidth.json");
  int count = 0;
  for (const CopySample& copy : found.copies) {
    if (copy.name != "device_to_device_bidirectional_memcpy_read_ce") continue;
    ++count;
    CHECK(copy.rate.si() < 400e9);
    CHECK(copy.beside == Beside::reverse_copy);
  }
  CHECK(count == 4);
}

TEST_CASE("nvbandwidth latency tests are nanoseconds") {
  const Observations found = import_fixture("h200.nvbandwidth.json");
  REQUIRE(found.latencies.size() == 2);
  CHECK(found.latencies[0].time.si() == Approx(640.5e-9));
}

TEST_CASE("failed, summing and unreadable nvbandwidth entries are counted") {
  const Observations found = import_fixture("h200.nvbandwidth.json");
  CHECK(found.unparsed.count == 4);  // Running, Error, all_to_one, the cell "oops"
  CHECK_THAT(warnings_of(found), Contains("illegal memory access"));
}

TEST_CASE("NVBench states give median times, and bytes by the mean that their rate divides by") {
  const Observations found = import_fixture("h100.nvbench.json");
  REQUIRE(found.kernels.size() == 3);
  CHECK(found.kernels[0].name == "copy");
  CHECK(found.kernels[0].shape == "T=F32 Elements=1048576");
  CHECK(found.kernels[0].count == 200);
  CHECK(found.kernels[0].median.si() == Approx(4e-6));
  CHECK(found.kernels[0].total.si() == Approx(1e-3));
  CHECK(found.kernels[0].bytes->si() == Approx(8e6));
  REQUIRE(found.memory.size() == 1);
  CHECK(found.memory[0].rate.si() == Approx(2e12));
  CHECK(found.kernels[1].median.si() == Approx(2e-5));  // old files have the mean only
  CHECK(found.kernels[2].kind == KernelClass::gemm);
  CHECK(found.unparsed.count == 2);  // skipped, and no cold time
  CHECK(found.machine.gpu_names == std::vector<std::string>{"NVIDIA H100 PCIe"});
}

TEST_CASE("each kind of bench line becomes its sample, by the median of the repetitions") {
  const Observations found = import_fixture("run.jsonl");
  CHECK(found.format == "bench");
  REQUIRE(found.copies.size() == 1);
  CHECK(found.copies[0].rate.si() == Approx(1e6 / 2e-5));
  CHECK(found.copies[0].beside == Beside::reverse_copy);
  REQUIRE(found.memory.size() == 1);
  CHECK(found.memory[0].rate.si() == Approx(12e6 / 3.5e-6));
  REQUIRE(found.gemms.size() == 1);
  CHECK(found.gemms[0].k == 1024);
  REQUIRE(found.kernels.size() == 2);
  CHECK(found.kernels[0].kind == KernelClass::attention);
  CHECK(found.kernels[1].bytes->si() == 14.3e6);
  REQUIRE(found.latencies.size() == 1);
  REQUIRE(found.collectives.size() == 1);
  CHECK(found.collectives[0].ranks_per_node == 4);
  CHECK(found.collectives[0].place.line == 8);
  CHECK(found.environment == std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"}});
  CHECK(found.provenance.at("machine") == "node-a");
}

TEST_CASE("bench lines of unknown kind and cut off are counted, of one rank just not used") {
  const Observations found = import_fixture("run.jsonl");
  CHECK(found.unparsed.malformed == 2);
  CHECK(found.unparsed.malformed_examples[1].number == 11);
}
