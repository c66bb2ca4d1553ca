// SPDX-License-Identifier: Apache-2.0
// [M231] Tables of the pipeline schedules: what must hold for each, and orders counted by hand.
#include "sim/plan/schedule.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/plan/memory.hpp"

using namespace scapesim;
using plan::Pass;
using plan::Pipeline;
using plan::Slot;
using plan::StageOrder;
using spec::Schedule;

namespace {

Pipeline pipeline_for(Schedule schedule, int stages, int micro_batches) {
  const bool dual = schedule == Schedule::dualpipe;
  return {.stages = stages,
          .chunks = schedule == Schedule::interleaved ? 3
                    : dual                            ? 2
                                                      : 1,
          .micro_batches = dual ? std::max(micro_batches, 2 * stages) : micro_batches,
          .placement = plan::placement_of(schedule)};
}

std::size_t place(const StageOrder& order, Pass pass, int chunk, int micro_batch) {
  const auto found = std::ranges::find(order, Slot{pass, chunk, micro_batch});
  return static_cast<std::size_t>(found - order.begin());
}

/// Micro-batches alive at once, all chunks counted.
int most_alive(const StageOrder& order, int chunks) {
  const std::vector<Bytes> one(static_cast<std::size_t>(chunks), Bytes(1));
  return static_cast<int>(plan::most_kept(order, one).si());
}

}  // namespace

TEST_CASE("[M231] every schedule runs each pass once, forward before backward") {
  for (const plan::ScheduleRow& row : plan::schedules())
    for (const int p : {1, 2, 4})
      for (const int m : {p, 3 * p}) {
        const Pipeline pipeline = pipeline_for(row.schedule, p, m);
        for (int stage = 0; stage < p; ++stage) {
          const StageOrder order = plan::stage_order(row.schedule, pipeline, stage);
          StageOrder sorted = order;
          std::ranges::sort(sorted);
          CHECK(std::ranges::adjacent_find(sorted) == sorted.end());
          std::ptrdiff_t count = 0;
          for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
            for (int i = 0; i < pipeline.micro_batches; ++i) {
              const bool halves = place(order, Pass::backward, chunk, i) == order.size();
              if (row.schedule != Schedule::dualpipe)
                CHECK(halves == (row.schedule == Schedule::zb_h1));
              count += halves ? 3 : 2;
              const Pass first = halves ? Pass::input_gradient : Pass::backward;
              const Pass last = halves ? Pass::weight_gradient : Pass::backward;
              CHECK(place(order, Pass::forward, chunk, i) < place(order, first, chunk, i));
              CHECK(place(order, first, chunk, i) <= place(order, last, chunk, i));
              CHECK(place(order, last, chunk, i) < order.size());
            }
          CHECK(std::ssize(order) == count);
        }
      }
}

TEST_CASE("1F1B of two stages and three micro-batches") {
  using enum Pass;
  const Pipeline pipeline{.stages = 2, .chunks = 1, .micro_batches = 3};
  CHECK(plan::stage_order(Schedule::one_f_one_b, pipeline, 0) == StageOrder{{forward, 0, 0},
                                                                            {forward, 0, 1},
                                                                            {backward, 0, 0},
                                                                            {forward, 0, 2},
                                                                            {backward, 0, 1},
                                                                            {backward, 0, 2}});
  CHECK(plan::stage_order(Schedule::one_f_one_b, pipeline, 1) == StageOrder{{forward, 0, 0},
                                                                            {backward, 0, 0},
                                                                            {forward, 0, 1},
                                                                            {backward, 0, 1},
                                                                            {forward, 0, 2},
                                                                            {backward, 0, 2}});
}

TEST_CASE("[M237] a stage of 1F1B holds min(m, p - s) micro-batches, of GPipe all") {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {1, 3, 8, 20})
      for (int stage = 0; stage < p; ++stage) {
        const Pipeline pipeline{.stages = p, .chunks = 1, .micro_batches = m};
        CHECK(most_alive(plan::stage_order(Schedule::one_f_one_b, pipeline, stage), 1) ==
              std::min(m, p - stage));
        CHECK(most_alive(plan::stage_order(Schedule::gpipe, pipeline, stage), 1) == m);
      }
}

TEST_CASE("[M237] the first interleaved stage holds p (1 + (p-1)/(p v)) micro-batches") {
  // Korthikanti 2022, sec. 4.2.3: the chunks of the warm-up and one more.
  for (const int p : {2, 4, 8})
    for (const int v : {2, 4}) {
      const Pipeline pipeline{.stages = p, .chunks = v, .micro_batches = 4 * p};
      const int chunks_held = most_alive(plan::stage_order(Schedule::interleaved, pipeline, 0), v);
      CHECK(chunks_held == p * v + p - 1);
    }
}

TEST_CASE("[M237] ZB-H1 holds on no stage more than 1F1B on its first") {
  for (const int p : {2, 4, 8})
    for (int stage = 0; stage < p; ++stage) {
      const Pipeline pipeline{.stages = p, .chunks = 1, .micro_batches = 3 * p};
      CHECK(most_alive(plan::stage_order(Schedule::zb_h1, pipeline, stage), 1) <= p);
    }
}

TEST_CASE("[M425] DualPipe cut in half holds 2p + 1 chunks at most, on every stage alike") {
  // DeepSeek-V3 2024, table 2: PP + 1 for PP = 2p parts of the model.
  for (const int p : {2, 4, 8})
    for (const int m : {2 * p, 2 * p + 1, 5 * p})
      for (int stage = 0; stage < p; ++stage) {
        const Pipeline pipeline = pipeline_for(Schedule::dualpipe, p, m);
        CHECK(most_alive(plan::stage_order(Schedule::dualpipe, pipeline, stage), 2) == 2 * p + 1);
      }
}

TEST_CASE("[M425] the parts of the model lie in a V") {
  const Pipeline pipeline{
      .stages = 4, .chunks = 2, .micro_batches = 8, .placement = plan::Placement::vee};
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(plan::part_of(pipeline, stage, 0) == stage);
    CHECK(plan::part_of(pipeline, stage, 1) == 7 - stage);
  }
  for (int part = 0; part < 8; ++part)
    CHECK(plan::part_of(pipeline, plan::stage_of(pipeline, part), plan::chunk_of(pipeline, part)) ==
          part);
}

TEST_CASE("[M237] a settled pipeline holds as much as the whole one") {
  for (const plan::ScheduleRow& row : plan::schedules())
    for (const int p : {1, 2, 3, 5, 8})
      for (const int m : {p, 4 * p, 5 * p, 16 * p}) {
        const Pipeline whole = pipeline_for(row.schedule, p, m);
        const Pipeline part = plan::settled(whole, row.schedule);
        std::vector<Bytes> kept;
        for (int chunk = 0; chunk < whole.chunks; ++chunk) kept.push_back(Bytes(1 + 7 * chunk % 5));
        for (int stage = 0; stage < p; ++stage)
          CHECK(plan::most_kept(plan::stage_order(row.schedule, part, stage), kept) ==
                plan::most_kept(plan::stage_order(row.schedule, whole, stage), kept));
      }
}
