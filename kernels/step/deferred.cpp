// SPDX-License-Identifier: Apache-2.0
#include "kernels/step/deferred.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "kernels/step/host_kernels.hpp"

namespace scapesim::step {

namespace {

using Clock = std::chrono::steady_clock;

struct HostEvent final : Event::State {
  std::optional<Clock::time_point> happened;
};

HostEvent& host_event(const Event& event) { return static_cast<HostEvent&>(*event.state()); }

}  // namespace

class DeferredRank final : public Backend {
 public:
  DeferredRank(DeferredWorld& world, std::size_t rank) : world_(world), rank_(rank) {}

  int rank() const override { return static_cast<int>(rank_); }
  int ranks() const override { return static_cast<int>(world_.ranks_); }

  /// Filled with NaN: who reads what nobody wrote gives himself away.
  void* allocate(std::size_t bytes, Where) override {
    memory_.emplace_back((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t) + 1,
                         ~std::uint64_t{0});
    return memory_.back().data();
  }

  Event record(Lane lane) override {
    auto state = std::make_shared<HostEvent>();
    enqueue(lane, [state] { state->happened = Clock::now(); });
    return Event(state);
  }

  void wait(Lane lane, const Event& event) override {
    if (!event) return;
    world_.waits_.push_back(lane);
    if (world_.left_out_ == world_.waits_.size() - 1) return;
    queue(lane).push_back({.may_run = [event] { return host_event(event).happened.has_value(); },
                           .run = [] {},
                           .collective = {}});
  }

  void synchronise() override { world_.run(); }

  double seconds_between(const Event& begin, const Event& end) override {
    const auto& first = host_event(begin).happened;
    const auto& last = host_event(end).happened;
    SCAPESIM_CHECK(first && last, "an event that is not past");
    return std::chrono::duration<double>(*last - *first).count();
  }

  void copy(Lane lane, void* to, const void* from, std::size_t bytes) override {
    enqueue(lane, [=] { std::memcpy(to, from, bytes); });
  }
  void clear(Lane lane, void* memory, std::size_t bytes) override {
    enqueue(lane, [=] { std::memset(memory, 0, bytes); });
  }

  void run(Lane lane, const Accumulate& arguments) override { kernel(lane, arguments); }
  void run(Lane lane, const Gather& arguments) override { kernel(lane, arguments); }
  void run(Lane lane, const Select& arguments) override { kernel(lane, arguments); }
  void run(Lane lane, const kernels::Stitch& arguments) override { kernel(lane, arguments); }
  void run(Lane lane, const kernels::ScanTiles& arguments) override { kernel(lane, arguments); }
  void run(Lane lane, const SelectedNorm& arguments) override { kernel(lane, arguments); }
  void run(Lane lane, const ScatterAdamS& arguments) override { kernel(lane, arguments); }
  void run(Lane lane, const WriteBack& arguments) override { kernel(lane, arguments); }

  void all_reduce_mean(Lane lane, float* values, std::size_t count) override {
    collective(lane, {reference::Collective::all_reduce, true, values, nullptr, count});
  }
  void all_reduce_sum(Lane lane, float* values, std::size_t count) override {
    collective(lane, {reference::Collective::all_reduce, false, values, nullptr, count});
  }
  void all_gather(Lane lane, const std::uint8_t* own, std::uint8_t* all,
                  std::size_t bytes) override {
    collective(lane, {reference::Collective::all_gather, false, all, own, bytes});
  }

 private:
  DeferredWorld::Queue& queue(Lane lane) {
    return world_.queue(rank_, static_cast<std::size_t>(lane));
  }
  void enqueue(Lane lane, std::function<void()> work) {
    queue(lane).push_back({.may_run = {}, .run = std::move(work), .collective = {}});
  }
  template <class Arguments>
  void kernel(Lane lane, const Arguments& arguments) {
    enqueue(lane, [this, arguments] {
      if constexpr (requires { arguments.payload; })
        if (arguments.mask.words != nullptr) check_payload(arguments.payload, arguments.mask);
      on_host(arguments);
    });
  }
  /// A mask selects no more than the payload's memory holds: another one is not the step's.
  void check_payload(const float* payload, const kernels::MaskView& mask) const {
    const std::uint64_t all = mask.offsets[kernels::tiles_of(mask.elements)];
    const std::less_equal<const void*> not_after;
    const auto holds = [&](const std::vector<std::uint64_t>& memory) {
      const void* const end = memory.data() + memory.size();
      return not_after(memory.data(), payload) && not_after(payload, end) && all <= mask.elements &&
             not_after(payload + all, end);
    };
    SCAPESIM_CHECK(std::ranges::any_of(memory_, holds), "{} selected", all);
  }
  void collective(Lane lane, DeferredWorld::Collective call) {
    queue(lane).push_back({.may_run = {}, .run = {}, .collective = call});
  }

  DeferredWorld& world_;
  std::size_t rank_;
  std::deque<std::vector<std::uint64_t>> memory_;
};

DeferredWorld::DeferredWorld(int ranks, std::optional<std::uint64_t> seed)
    : ranks_(static_cast<std::size_t>(ranks)),
      communicator_(ranks),
      queues_(ranks_ * kLanes),
      priorities_(ranks_ * kLanes) {
  if (seed) random_.emplace(*seed);
  if (random_)
    for (std::uint64_t& priority : priorities_) priority = random_->bits();
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    backends_.push_back(std::make_unique<DeferredRank>(*this, rank));
}

DeferredWorld::~DeferredWorld() = default;

Backend& DeferredWorld::rank(int rank) { return *backends_.at(static_cast<std::size_t>(rank)); }

bool DeferredWorld::can_run(std::size_t lane_of_rank) {
  const Queue& own = queues_[lane_of_rank];
  if (own.empty()) return false;
  if (!own.front().collective) return !own.front().may_run || own.front().may_run();
  for (std::size_t other = lane_of_rank % kLanes; other < queues_.size(); other += kLanes)
    if (queues_[other].empty() || !queues_[other].front().collective) return false;
  return true;
}

void DeferredWorld::run() {
  std::vector<std::size_t> ready;
  for (;;) {
    ready.clear();
    for (std::size_t i = 0; i < queues_.size(); ++i)
      if (can_run(i)) ready.push_back(i);
    if (ready.empty()) break;
    step_of(pick(ready));
  }
  SCAPESIM_CHECK(std::ranges::all_of(queues_, &Queue::empty), "all lanes wait: {}", stuck());
}

// The highest priority goes on; now and then a lane gets another one (Burckhardt et al. 2010 find
// most ordering faults with few such changes).
std::size_t DeferredWorld::pick(const std::vector<std::size_t>& ready) {
  const std::size_t best = *std::ranges::max_element(
      ready, [&](std::size_t a, std::size_t b) { return priorities_[a] < priorities_[b]; });
  if (random_ && random_->below(32) == 0) priorities_[best] = random_->bits();
  return best;
}

void DeferredWorld::step_of(std::size_t lane_of_rank) {
  Queue& own = queues_[lane_of_rank];
  if (own.front().collective) {
    run_collective(lane_of_rank % kLanes);
    return;
  }
  const Task task = std::move(own.front());
  own.pop_front();
  task.run();
}

void DeferredWorld::run_collective(std::size_t lane) {
  std::vector<Collective> calls;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    calls.push_back(*queue(rank, lane).front().collective);
    queue(rank, lane).pop_front();
    SCAPESIM_CHECK(calls.back().kind == calls[0].kind && calls.back().mean == calls[0].mean &&
                       calls.back().count == calls[0].count,
                   "rank {} calls another collective than rank 0", rank);
  }
  if (calls[0].kind == reference::Collective::all_gather) {
    reference::PerRank<std::uint8_t> own;
    for (const Collective& call : calls) own.emplace_back(call.own, call.own + call.count);
    const auto all = communicator_.all_gather("all-gather", own);
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      std::ranges::copy(all[rank], static_cast<std::uint8_t*>(calls[rank].values));
    return;
  }
  reference::PerRank<float> buffers;
  for (const Collective& call : calls) {
    const auto* values = static_cast<const float*>(call.values);
    buffers.emplace_back(values, values + call.count);
  }
  if (calls[0].mean)
    communicator_.all_reduce_mean("all-reduce", buffers);
  else
    communicator_.all_reduce_sum("all-reduce", buffers);
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    std::ranges::copy(buffers[rank], static_cast<float*>(calls[rank].values));
}

std::string DeferredWorld::stuck() const {
  std::string text;
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (!queues_[i].empty())
      text += fmt::format("rank {} lane {}: {}{}", i / kLanes, i % kLanes,
                          queues_[i].front().collective ? "collective" : "event",
                          i + 1 < queues_.size() ? "; " : "");
  return text;
}

}  // namespace scapesim::step
