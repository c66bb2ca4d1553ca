// SPDX-License-Identifier: Apache-2.0
// [M55] The schedule of chunks through two buffers, played in random orders that respect queues and
// waits: nothing is overwritten, nothing is left out.
#include "kernels/step/offload.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "sim/base/random.hpp"

using namespace scapesim;
using namespace scapesim::step;

namespace {

/// A move of a step, in a play of several steps.
struct Played {
  ChunkMove move;
  int step;
};

/// Plays `steps` rounds of a schedule: three queues, any of which may go on when its front's waits
/// are past. Every buffer must be free when a chunk comes in, and hold the chunk in the right state
/// when it is passed over and goes out. Returns the first thing that is wrong, or empty.
class Play {
 public:
  Play(const std::vector<ChunkMove>& schedule, int steps, std::uint64_t seed) : random_(seed) {
    for (int step = 0; step < steps; ++step)
      for (const ChunkMove& move : schedule)
        queues_[static_cast<std::size_t>(move.stage)].push_back({move, step});
  }

  std::string fault() {
    for (;;) {
      std::vector<std::size_t> ready;
      for (std::size_t queue = 0; queue < 3; ++queue)
        if (next_[queue] < queues_[queue].size() && may_go(queues_[queue][next_[queue]]))
          ready.push_back(queue);
      if (ready.empty()) return finished() ? "" : "all wait";
      const std::size_t queue = ready[random_.below(ready.size())];
      const Played& played = queues_[queue][next_[queue]++];
      const std::string wrong = go(played);
      if (!wrong.empty()) return wrong;
    }
  }

 private:
  using Done = std::tuple<int, Stage, std::size_t>;

  bool finished() const {
    for (std::size_t queue = 0; queue < 3; ++queue)
      if (next_[queue] < queues_[queue].size()) return false;
    return true;
  }
  bool may_go(const Played& played) const {
    for (const ChunkWait& wait : played.move.waits) {
      const int step = played.step - wait.steps_back;
      if (step >= 0 && !done_.contains({step, wait.stage, wait.chunk})) return false;
    }
    return true;
  }
  std::string go(const Played& played) {
    const ChunkMove& move = played.move;
    Buffer& buffer = buffers_[move.buffer];
    const Buffer wanted = {played.step, move.chunk, move.stage};
    if (move.stage == Stage::in) {
      if (buffer.holds != Stage::out) return "a chunk comes into a buffer that was not emptied";
      if (stored_.contains(move.chunk) && stored_[move.chunk] != played.step)
        return "a chunk comes in before the step before stored it";
    } else if (buffer.step != wanted.step || buffer.chunk != wanted.chunk ||
               buffer.holds != (move.stage == Stage::pass ? Stage::in : Stage::pass)) {
      return "the buffer holds something else";
    }
    buffer = wanted;
    if (move.stage == Stage::out) stored_[move.chunk] = played.step + 1;
    done_.insert({played.step, move.stage, move.chunk});
    return {};
  }

  struct Buffer {
    int step = 0;
    std::size_t chunk = 0;
    Stage holds = Stage::out;  ///< the last stage that touched it; out: empty
  };
  Random random_;
  std::vector<Played> queues_[3];
  std::size_t next_[3] = {};
  std::set<Done> done_;
  std::map<std::size_t, int> stored_;  ///< steps that a chunk has been through
  Buffer buffers_[2];
};

}  // namespace

TEST_CASE("[M55] every element comes in, is passed over and goes out exactly once") {
  for (const std::size_t elements : {0, 1, 7, 8, 9, 16, 17, 100})
    for (const std::size_t chunk : {1, 3, 8, 100, 1000}) {
      std::map<Stage, std::vector<int>> touched;
      for (const Stage stage : {Stage::in, Stage::pass, Stage::out})
        touched[stage].assign(elements, 0);
      for (const ChunkMove& move : chunk_schedule(elements, chunk)) {
        CHECK(move.count > 0);
        CHECK(move.count <= chunk);
        CHECK(move.buffer < 2);
        for (std::size_t i = move.first; i < move.first + move.count; ++i) ++touched[move.stage][i];
      }
      for (const auto& [stage, counts] : touched) CHECK(counts == std::vector<int>(elements, 1));
    }
}

TEST_CASE("[M55] no buffer is overwritten before its copy out has ended, in any order") {
  for (const std::size_t chunks : {1, 2, 3, 4, 7})
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      INFO(chunks << " chunks, seed " << seed);
      CHECK(Play(chunk_schedule(chunks * 8 - 3, 8), 3, seed).fault().empty());
    }
}

TEST_CASE("[M55] a wait that is left out shows, unless another one implies it") {
  for (const std::size_t chunks : {1, 2, 3, 4, 7}) {
    const std::vector<ChunkMove> schedule = chunk_schedule(chunks * 8, 8);
    int implied = 0;
    for (std::size_t move = 0; move < schedule.size(); ++move)
      for (std::size_t wait = 0; wait < schedule[move].waits.size(); ++wait) {
        std::vector<ChunkMove> faulty = schedule;
        const ChunkWait left_out = faulty[move].waits[wait];
        faulty[move].waits.erase(faulty[move].waits.begin() + static_cast<std::ptrdiff_t>(wait));
        bool shows = false;
        for (std::uint64_t seed = 0; seed < 300 && !shows; ++seed)
          shows = !Play(faulty, 3, seed).fault().empty();
        // A chunk's own copy out is before the last one's, and before that of the chunk whose
        // buffer it takes; with one chunk the two waits are the same.
        const bool may_be_implied = left_out.steps_back == 1;
        if (!shows) ++implied;
        INFO(chunks << " chunks, move " << move << ", wait " << wait);
        CHECK((shows || may_be_implied));
      }
    CHECK(implied <= static_cast<int>(chunks) + 2);
  }
}

TEST_CASE("[M55] chunk i waits for the copy out of chunk i-2, the first two for the step before") {
  const std::vector<ChunkMove> schedule = chunk_schedule(4 * 8, 8);
  std::vector<ChunkMove> in;
  for (const ChunkMove& move : schedule)
    if (move.stage == Stage::in) in.push_back(move);
  REQUIRE(in.size() == 4);
  CHECK(in[0].waits == std::vector<ChunkWait>{{Stage::out, 0, 1}, {Stage::out, 3, 1}});
  CHECK(in[1].waits == std::vector<ChunkWait>{{Stage::out, 1, 1}, {Stage::out, 3, 1}});
  CHECK(in[2].waits == std::vector<ChunkWait>{{Stage::out, 0, 0}, {Stage::out, 2, 1}});
  CHECK(in[3].waits == std::vector<ChunkWait>{{Stage::out, 1, 0}, {Stage::out, 3, 1}});
}
