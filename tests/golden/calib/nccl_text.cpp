// SPDX-License-Identifier: Apache-2.0
// nccl-tests' text output in every variant. Times are what the fixtures print, in microseconds.
#include <catch2/catch.hpp>

#include "calib/import_text.hpp"
#include "sim/result/metrics.hpp"
#include "support.hpp"

using namespace scapesim;
using namespace scapesim::calib;
using Catch::Contains;
using graph::CollectiveKind;

namespace {

double us(Seconds time) { return time.si() * 1e6; }

}  // namespace

TEST_CASE("rank lines, rows, network and forced choices of a run on two nodes are read") {
  const Observations found = import_fixture("two-nodes.log");
  CHECK(found.format == "nccl-tests");
  REQUIRE(found.collectives.size() == 2);
  const CollectiveSample& row = found.collectives[1];
  CHECK(row.kind == CollectiveKind::all_reduce);
  CHECK(row.size.si() == 1048576);
  CHECK(row.ranks == 16);
  CHECK(row.nodes == 2);
  CHECK(row.ranks_per_node == 8);
  CHECK(us(row.time) == Approx(98.75));
  CHECK(us(*row.in_place) == Approx(101.5));
  CHECK(row.datatype == "float");
  CHECK(row.algorithm == "ring");
  CHECK(row.protocol == "simple");
  CHECK(row.transport == "ib");
  CHECK(row.place.line == 32);
  CHECK(found.machine.gpu_names == std::vector<std::string>{"NVIDIA H100 80GB HBM3"});
  CHECK(found.machine.gpus == 16);
  CHECK(found.machine.hosts == 2);
  CHECK(found.provenance.at("nccl-tests") == "2.17.1");
  CHECK(found.warnings.empty());
}

TEST_CASE("small sizes use the time, for two decimals of GB/s say nothing") {
  const Observations found = import_fixture("two-nodes.log");
  CHECK(us(found.collectives[0].time) == Approx(35.5));  // prints 0.03 GB/s
}

TEST_CASE("environment variables other than NCCL_* and CUDA_* are never kept, nor shown") {
  const Observations found = import_fixture("two-nodes.log");
  CHECK(found.environment ==
        std::map<std::string, std::string>{
            {"CUDA_DEVICE_MAX_CONNECTIONS", "1"}, {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}});
  REQUIRE(found.unparsed.examples.size() == 2);
  CHECK(found.unparsed.examples[0].text == "+ export WANDB_API_KEY=...");
  const Observations bad = import_fixture("bad-rows.log");
  REQUIRE(bad.unparsed.examples.size() == 1);
  CHECK(bad.unparsed.examples[0].text ==
        "started by ada with PASSWORD=... and NCCL_DEBUG=INFO here");
}

TEST_CASE("with -C the time follows from the bandwidth, where that is precise enough") {
  const Observations found = import_fixture("cpu-time.log");
  REQUIRE(found.collectives.size() == 2);
  // Printed 209.72 and 214.75 GB/s: within 0.003 %.
  CHECK(us(found.collectives[0].time) == Approx(500).epsilon(3e-5));
  CHECK(us(found.collectives[1].time) == Approx(20000).epsilon(3e-5));
  CHECK(found.unparsed.malformed == 1);  // 0.03 GB/s
  CHECK(found.warnings.empty());
}

TEST_CASE("a time stamp of two words does not shift columns") {
  const Observations found = import_fixture("timestamps.log");
  REQUIRE(found.collectives.size() == 2);
  CHECK(found.collectives[1].kind == CollectiveKind::reduce_scatter);
  CHECK(us(found.collectives[1].time) == Approx(101));
  CHECK(us(*found.collectives[1].in_place) == Approx(102));
}

TEST_CASE("per-iteration columns do not shift the others") {
  const Observations found = import_fixture("per-iteration.log");
  REQUIRE(found.collectives.size() == 1);
  CHECK(found.collectives[0].kind == CollectiveKind::all_to_all);
  CHECK(us(found.collectives[0].time) == Approx(61));
  CHECK(us(*found.collectives[0].in_place) == Approx(60.5));
  CHECK(found.collectives[0].datatype == "half");
}

TEST_CASE("an old log without the test's name is told from redop and bandwidths") {
  const Observations found = import_fixture("old-unnamed.log");
  REQUIRE(found.collectives.size() == 2);
  CHECK(found.collectives[0].kind == CollectiveKind::all_reduce);
  CHECK(found.collectives[0].ranks == 4);
  CHECK(us(found.collectives[1].time) == Approx(260.5));
  CHECK(found.machine.gpu_names == std::vector<std::string>{"A100-SXM4-40GB"});
}

TEST_CASE("an old log without redop takes the test's name from the file's, or is refused") {
  const Observations found = import_fixture("all_gather-old.log");
  REQUIRE(found.collectives.size() == 1);
  CHECK(found.collectives[0].kind == CollectiveKind::all_gather);
  CHECK(us(found.collectives[0].time) == Approx(150.5));
  CHECK_THAT(refusal(fixture("old-ambiguous.log")), Contains("all_reduce_perf in the log"));
}

TEST_CASE("numbers with exponents, a blank redop and unchecked results are read") {
  const Observations found = import_fixture("exponents.log");
  REQUIRE(found.collectives.size() == 2);
  CHECK(found.collectives[0].kind == CollectiveKind::broadcast);
  CHECK(found.collectives[0].size.si() == 2e9);
  CHECK(us(found.collectives[0].time) == Approx(8000));
  CHECK(us(found.collectives[1].time) == Approx(1.2e8));
  CHECK(found.warnings.empty());
}

TEST_CASE("programs that mpirun interleaves do not add up to more ranks") {
  const Observations found = import_fixture("interleaved.log");
  REQUIRE(found.collectives.size() == 2);
  for (const CollectiveSample& row : found.collectives) CHECK(row.ranks == 4);
  CHECK(us(found.collectives[0].time) == Approx(51.5));
  CHECK(us(found.collectives[1].time) == Approx(51.75));
  CHECK(found.warnings.empty());
}

TEST_CASE("labels of srun are no part of a line") {
  const Observations found = import_fixture("srun-label.log");
  REQUIRE(found.collectives.size() == 1);
  CHECK(found.collectives[0].ranks == 4);
}

TEST_CASE("runs one after another keep their own ranks; one that failed leaves none") {
  const Observations found = import_fixture("three-runs.log");
  REQUIRE(found.collectives.size() == 2);
  CHECK(found.collectives[0].kind == CollectiveKind::send_recv);
  CHECK(found.collectives[0].ranks == 2);
  CHECK(found.collectives[1].kind == CollectiveKind::all_gather);
  CHECK(found.collectives[1].ranks == 8);
  CHECK(found.machine.gpu_names ==
        std::vector<std::string>{"NVIDIA H100 80GB HBM3", "NVIDIA H200"});
  CHECK_THAT(warnings_of(found), Contains("1 rows of scatter_perf are not used"));
}

TEST_CASE("[M70] a printed bus bandwidth that does not follow from time and ranks is a warning") {
  const Observations found = import_fixture("wrong-ranks.log");
  CHECK(found.collectives.size() == 2);
  CHECK_THAT(warnings_of(found), Contains("4 of 4 rows print another bus bandwidth"));
  CHECK(result::busbw_factor(CollectiveKind::all_reduce, 4) == 1.5);  // printed with 8 ranks' 1.75
}

TEST_CASE("rows with wrong data and broken rows are counted and shown, not used") {
  const Observations found = import_fixture("bad-rows.log");
  REQUIRE(found.collectives.size() == 1);
  CHECK(us(found.collectives[0].time) == Approx(61.5));
  CHECK(found.unparsed.malformed == 2);
  CHECK(found.unparsed.malformed_examples[1].number == 17);
  CHECK_THAT(found.unparsed.malformed_examples[1].text, Contains("driver message"));
}

TEST_CASE("a row cut off behind its out-of-place result is not taken for an in-place one") {
  std::string text = fixture("srun-label.log");
  const std::size_t last = text.rfind("       0");
  text.resize(last - 24);  // the second result is 32 wide
  CHECK_THAT(refusal(text), Contains("lines that look like one"));
}

TEST_CASE("a replayed trace has in-place results only") {
  const Observations found = import_fixture("in-place-only.log");
  REQUIRE(found.collectives.size() == 1);
  CHECK(us(found.collectives[0].time) == Approx(52));
  CHECK(found.collectives[0].in_place == found.collectives[0].time);
}

TEST_CASE("ranks of a split communicator are those of one group") {
  const Observations found = import_fixture("split.log");
  REQUIRE(found.collectives.size() == 1);
  CHECK(found.collectives[0].ranks == 2);
  CHECK(found.collectives[0].nodes == 2);
  CHECK(found.warnings.empty());
}

TEST_CASE("one rank sends nothing and is refused") {
  CHECK_THAT(refusal(fixture("one-rank.log")), Contains("two or more ranks"));
}

TEST_CASE("half a unit in the last place follows the printed digits") {
  CHECK(half_unit("12.34") == Approx(0.005));
  CHECK(half_unit("1234") == 0.5);
  CHECK(half_unit("1.2e+06") == Approx(5e4));
}
