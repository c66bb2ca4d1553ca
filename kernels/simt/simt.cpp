// SPDX-License-Identifier: Apache-2.0
// One OS thread; fibers by ucontext, switched by setjmp where nothing forbids it: that needs no
// system call. A barrier or collective gives control back to the scheduler, and so does, now and
// then, a memory access.
#undef _FORTIFY_SOURCE  // its longjmp knows one stack only
#include "kernels/simt/simt.hpp"

#include <array>
#include <csetjmp>
#include <memory>
#include <numeric>
#include <string>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

#include "kernels/simt/accesses.hpp"
#include "sim/base/check.hpp"
#include "sim/base/random.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

simt::Index threadIdx;
simt::Index blockIdx;
simt::Index gridDim;

namespace simt {

namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr std::size_t kStack = std::size_t{64} << 10U;
constexpr unsigned kMeanAccesses = 64;  ///< between two switches at accesses

enum class State { ready, at_barrier, at_collective, done };

/// Where a fiber, or the scheduler, goes on.
struct Place {
  ucontext_t context;
  jmp_buf jump;
  bool entered = false;
  void* fake_stack = nullptr;  ///< AddressSanitizer's
};

struct Thread {
  Place place;
  State state;
};

struct Warp {
  Collective kind;
  unsigned arrived;
  std::uint32_t interval;
  /// By the interval's parity: a slow lane reads the one while a fast one writes the other.
  std::array<std::array<std::uint64_t, kWarp>, 2> values;
};

struct Scheduler {
  std::array<Thread, kMaxThreads> threads;
  std::array<Warp, kMaxThreads / kWarp> warps;
  std::byte* stacks = nullptr;
  bool fibers_made = false;
  Place main;
  const void* main_stack = nullptr;
  std::size_t main_stack_size = 0;
  const std::function<void()>* body = nullptr;
  std::vector<unsigned> ready;
  unsigned count = 0;
  unsigned at_barrier = 0;
  unsigned done = 0;
  std::uint32_t interval = 0;
  std::uint32_t block = 0;  ///< number of the running block, over all launches
  std::uint32_t first_block = 0;
  bool running = false;
  unsigned current = 0;
  unsigned accesses_left = kMeanAccesses;
  std::size_t shared_bytes = 0;
  std::string fault;
  scapesim::Random random{1};
};

Scheduler& scheduler() {
  static const auto it = std::make_unique<Scheduler>();
  return *it;
}

void* stack_of(unsigned thread) { return scheduler().stacks + thread * kStack; }

/// Stores where we are and goes on where `to` was left.
void switch_places(Place& from, Place& to) {
#if defined(__SANITIZE_ADDRESS__)
  swapcontext(&from.context, &to.context);
#else
  from.entered = true;
  if (_setjmp(from.jump) != 0) return;
  if (to.entered) _longjmp(to.jump, 1);
  setcontext(&to.context);
#endif
}

void to_fiber(unsigned thread) {
  Scheduler& s = scheduler();
  s.current = thread;
  threadIdx.x = thread;
  s.running = true;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&s.main.fake_stack, stack_of(thread), kStack);
#endif
  switch_places(s.main, s.threads[thread].place);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(s.main.fake_stack, nullptr, nullptr);
#endif
  s.running = false;
}

/// Gives control back; returns when this thread's turn comes again.
void to_scheduler() {
  Scheduler& s = scheduler();
  Place& self = s.threads[s.current].place;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&self.fake_stack, s.main_stack, s.main_stack_size);
#endif
  switch_places(self, s.main);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(self.fake_stack, nullptr, nullptr);
#endif
}

/// The kernel ends here. No destructor on this fiber's stack will run: nothing may be owned there.
void give_up(const char* fault) {
  scheduler().fault = fault;
  to_scheduler();
}

/// A CUDA thread of every block in turn.
void fiber() {
  Scheduler& s = scheduler();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &s.main_stack, &s.main_stack_size);
#endif
  for (;;) {
    (*s.body)();
    s.threads[s.current].state = State::done;
    ++s.done;
    to_scheduler();
  }
}

/// Fibers at their begin, whatever became of them before.
void make_fibers() {
  Scheduler& s = scheduler();
  if (s.stacks == nullptr) {
    void* pages = mmap(nullptr, kMaxThreads * kStack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    SCAPESIM_CHECK(pages != MAP_FAILED, "no memory for stacks");
    s.stacks = static_cast<std::byte*>(pages);
  }
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(s.stacks, kMaxThreads * kStack);
#endif
  for (unsigned thread = 0; thread < kMaxThreads; ++thread) {
    Place& place = s.threads[thread].place;
    place.entered = false;
    place.fake_stack = nullptr;
    getcontext(&place.context);
    place.context.uc_stack.ss_sp = stack_of(thread);
    place.context.uc_stack.ss_size = kStack;
    place.context.uc_link = nullptr;
    makecontext(&place.context, fiber, 0);
  }
  s.fibers_made = true;
}

void make_ready(unsigned first, unsigned count) {
  Scheduler& s = scheduler();
  for (unsigned thread = first; thread < first + count; ++thread) {
    s.threads[thread].state = State::ready;
    s.ready.push_back(thread);
  }
}

/// What nobody can get past, in words.
std::string deadlock() {
  const Scheduler& s = scheduler();
  unsigned at_collective = 0;
  for (unsigned i = 0; i < s.count; ++i)
    at_collective += s.threads[i].state == State::at_collective ? 1U : 0U;
  return fmt::format("deadlock: {} threads at a barrier, {} at a collective of their warp, {} gone",
                     s.at_barrier, at_collective, s.done);
}

/// After a thread came back: does its barrier or collective open?
void open_what_is_full(unsigned thread) {
  Scheduler& s = scheduler();
  if (s.threads[thread].state == State::ready) s.ready.push_back(thread);
  Warp& warp = s.warps[thread / kWarp];
  if (warp.arrived == kWarp) {
    warp.arrived = 0;
    ++warp.interval;
    make_ready(thread / kWarp * kWarp, kWarp);
  }
  if (s.at_barrier == s.count) {
    s.at_barrier = 0;
    ++s.interval;
    make_ready(0, s.count);
  }
}

void run_block(unsigned threads) {
  Scheduler& s = scheduler();
  s.count = threads;
  s.at_barrier = s.done = 0;
  s.interval = 0;
  ++s.block;
  new_shared_memory(s.shared_bytes);
  s.ready.clear();
  for (unsigned warp = 0; warp < threads / kWarp; ++warp)
    s.warps[warp].arrived = s.warps[warp].interval = 0;
  make_ready(0, threads);
  while (s.done < threads) {
    if (s.ready.empty()) {
      s.fault = deadlock();
      return;
    }
    const auto pick = static_cast<std::size_t>(s.random.below(s.ready.size()));
    const unsigned thread = s.ready[pick];
    s.ready[pick] = s.ready.back();
    s.ready.pop_back();
    to_fiber(thread);
    if (!s.fault.empty()) return;
    open_what_is_full(thread);
  }
}

}  // namespace

void launch(const Grid& grid, const std::function<void()>& thread) {
  Scheduler& s = scheduler();
  SCAPESIM_CHECK(grid.threads % kWarp == 0 && grid.threads > 0 && grid.threads <= kMaxThreads,
                 "{} threads", grid.threads);
  if (!s.fibers_made) make_fibers();
  s.body = &thread;
  s.shared_bytes = grid.shared_bytes;
  s.first_block = s.block + 1;
  s.fault.clear();
  gridDim.x = grid.blocks;
  std::vector<unsigned> order(grid.blocks);
  std::iota(order.begin(), order.end(), 0U);
  scapesim::shuffle(order, s.random);
  for (const unsigned block : order) {
    blockIdx.x = block;
    run_block(grid.threads);
    if (s.fault.empty()) continue;
    s.fibers_made = false;  // they stand in the middle of a kernel
    throw Fault(fmt::format("{}, block {} of {}: {}", grid.name, block, grid.blocks, s.fault));
  }
}

void set_seed(std::uint64_t seed) { scheduler().random = scapesim::Random(seed); }

void* shared_bytes(std::size_t bytes) {
  if (bytes != scheduler().shared_bytes) give_up("the launch gave another size of shared memory");
  return shared_memory();
}

void barrier() {
  Scheduler& s = scheduler();
  s.threads[s.current].state = State::at_barrier;
  ++s.at_barrier;
  to_scheduler();
}

const std::uint64_t* exchange(Collective kind, unsigned mask, std::uint64_t value) {
  Scheduler& s = scheduler();
  const unsigned thread = s.current;
  Warp& warp = s.warps[thread / kWarp];
  if (mask != 0xffffffffU) give_up("a collective of less than a full warp");
  if (warp.arrived > 0 && warp.kind != kind)
    give_up("lanes of a warp are at different collectives");
  warp.kind = kind;
  const auto& values = warp.values[warp.interval % 2];
  warp.values[warp.interval % 2][thread % kWarp] = value;
  ++warp.arrived;
  s.threads[thread].state = State::at_collective;
  to_scheduler();
  return values.data();
}

void access(const void* pointer, std::size_t bytes, Access kind) {
  Scheduler& s = scheduler();
  if (!s.running) return;
  s.fault = fault_of(pointer, bytes, kind,
                     {.block = s.block,
                      .interval = s.interval,
                      .warp_interval = s.warps[s.current / kWarp].interval,
                      .thread = s.current},
                     s.first_block);
  if (!s.fault.empty()) to_scheduler();
  if (--s.accesses_left > 0) return;
  s.accesses_left = static_cast<unsigned>(1 + s.random.below(2 * kMeanAccesses));
  to_scheduler();
}

}  // namespace simt

unsigned atomicAdd(unsigned* place, unsigned value) {
  if (simt::sees_accesses()) simt::access(place, sizeof *place, simt::Access::atomic);
  const unsigned before = *place;
  *place = before + value;
  return before;
}

unsigned atomicOr(unsigned* place, unsigned value) {
  if (simt::sees_accesses()) simt::access(place, sizeof *place, simt::Access::atomic);
  const unsigned before = *place;
  *place = before | value;
  return before;
}
