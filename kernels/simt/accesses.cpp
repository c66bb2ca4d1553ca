// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/accesses.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <span>
#include <sys/mman.h>
#include <utility>

#include "kernels/simt/simt.hpp"
#include "sim/base/check.hpp"

namespace simt {

namespace {

constexpr std::size_t kArenaBytes = std::size_t{64} << 20U;
constexpr std::size_t kGuard = 256;  ///< never allocated, before and behind each array
constexpr std::uint32_t kHost = 0;   ///< block number of what the host wrote
constexpr std::uint32_t kMany = 0xffffffffU;

/// The last plain or atomic writer of a byte, and its readers since.
struct Cell {
  Moment writer;
  Moment reader;        ///< the last; thread kMany: several of its block
  bool read_by_blocks;  ///< readers are of several blocks of the reader's launch
  bool allocated;
  bool written;
  bool atomic;  ///< the writer was
};

constexpr Cell kFresh{.writer = {},
                      .reader = {},
                      .read_by_blocks = false,
                      .allocated = true,
                      .written = false,
                      .atomic = false};

/// Zero pages until touched.
template <class T>
std::span<T> reserve(std::size_t count) {
  void* pages = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  SCAPESIM_CHECK(pages != MAP_FAILED, "no memory for the SIMT shim");
  return {static_cast<T*>(pages), count};
}

struct Memory {
  std::span<std::byte> bytes;
  std::span<Cell> cells;

  bool holds(const void* pointer) const {
    const auto* place = static_cast<const std::byte*>(pointer);
    return place >= bytes.data() && place < bytes.data() + bytes.size();
  }
  std::size_t offset(const void* pointer) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - bytes.data());
  }
};

Memory& arena() {
  static Memory memory{reserve<std::byte>(kArenaBytes), reserve<Cell>(kArenaBytes)};
  return memory;
}

Memory& shared() {
  static Memory memory{reserve<std::byte>(kSharedBytes), reserve<Cell>(kSharedBytes)};
  return memory;
}

constexpr std::size_t kSector = 32;

/// The launches, by their first blocks, that last read and wrote a sector.
struct Sector {
  std::uint32_t read;
  std::uint32_t written;
};

std::span<Sector> sectors() {
  static const std::span<Sector> all = reserve<Sector>(kArenaBytes / kSector);
  return all;
}

Moved& moved() {
  static Moved bytes;
  return bytes;
}

void count_sectors(std::size_t offset, std::size_t bytes, Access access, std::uint32_t launch) {
  for (std::size_t i = offset / kSector; i <= (offset + bytes - 1) / kSector; ++i) {
    Sector& sector = sectors()[i];
    if (access != Access::write && sector.read != launch && sector.written != launch) {
      sector.read = launch;
      moved().read += kSector;
    }
    if (access != Access::read && sector.written != launch) {
      sector.written = launch;
      moved().written += kSector;
    }
  }
}

std::map<std::size_t, std::size_t>& allocations() {
  static std::map<std::size_t, std::size_t> sizes;  ///< by offset
  return sizes;
}

constexpr std::uint32_t warp_of(std::uint32_t thread) { return thread / 32; }

/// Whether an earlier access of this launch is ordered before `now`, or by the same thread.
bool ordered(const Moment& before, const Moment& now) {
  if (before.block != now.block) return false;
  if (before.interval != now.interval || before.thread == now.thread) return true;
  if (before.thread == kMany) return false;
  return warp_of(before.thread) == warp_of(now.thread) && before.warp_interval < now.warp_interval;
}

void add_reader(Cell& cell, const Moment& now, std::uint32_t first_block) {
  const Moment before = cell.reader;
  cell.reader = now;
  if (before.block < first_block) {
    cell.read_by_blocks = false;
  } else if (before.block != now.block) {
    cell.read_by_blocks = true;
  } else if (!ordered(before, now)) {
    cell.reader.thread = kMany;
  }
}

const char* fault_in(Cell& cell, Access access, const Moment& now, std::uint32_t first_block) {
  if (!cell.allocated) return "outside every array";
  if (!cell.written && access != Access::write) return "read before anything was written there";
  const bool in_launch = cell.writer.block >= first_block && cell.writer.block != kHost;
  if (in_launch && !(cell.atomic && access == Access::atomic) && !ordered(cell.writer, now))
    return access == Access::read ? "read and written without a barrier between"
                                  : "written twice without a barrier between";
  if (access == Access::read) {
    add_reader(cell, now, first_block);
    return nullptr;
  }
  const bool was_read = cell.reader.block >= first_block && cell.reader.block != kHost;
  if (was_read && (cell.read_by_blocks || !ordered(cell.reader, now)))
    return "read and written without a barrier between";
  cell.writer = now;
  cell.written = true;
  cell.atomic = access == Access::atomic;
  return nullptr;
}

}  // namespace

std::string fault_of(const void* pointer, std::size_t bytes, Access access, const Moment& now,
                     std::uint32_t first_block) {
  const bool in_shared = shared().holds(pointer);
  if (!in_shared && !arena().holds(pointer)) return {};
  Memory& memory = in_shared ? shared() : arena();
  const std::size_t offset = memory.offset(pointer);
  if (offset % std::min<std::size_t>(bytes, 16) != 0)
    return fmt::format("{} bytes at an address that is not aligned to them", bytes);
  if (!in_shared) count_sectors(offset, bytes, access, first_block);
  for (Cell& cell : memory.cells.subspan(offset, bytes))
    if (const char* what = fault_in(cell, access, now, first_block))
      return fmt::format("{} memory: {} (thread {} of block, {} bytes)",
                         in_shared ? "shared" : "device", what, now.thread, bytes);
  return {};
}

Moved take_moved_bytes() { return std::exchange(moved(), {}); }

void* allocate(std::size_t bytes) {
  std::size_t offset = kGuard;
  for (const auto& [begin, size] : allocations()) {
    if (begin >= offset + bytes + kGuard) break;
    offset = (begin + size + kGuard + kGuard - 1) / kGuard * kGuard;
  }
  if (offset + bytes + kGuard > kArenaBytes) return nullptr;
  allocations()[offset] = bytes;
  std::ranges::fill(arena().cells.subspan(offset, bytes), kFresh);
  return arena().bytes.data() + offset;
}

void release(void* pointer) {
  const auto found = allocations().find(arena().offset(pointer));
  SCAPESIM_CHECK(found != allocations().end(), "freed what was not allocated");
  std::ranges::fill(arena().cells.subspan(found->first, found->second), Cell{});
  allocations().erase(found);
}

void set_written(const void* pointer, std::size_t bytes) {
  if (!arena().holds(pointer)) return;
  for (Cell& cell : arena().cells.subspan(arena().offset(pointer), bytes)) {
    SCAPESIM_CHECK(cell.allocated, "a copy or fill outside every array");
    cell.written = true;
    cell.writer = {};
    cell.reader = {};
  }
}

std::byte* shared_memory() { return shared().bytes.data(); }

void new_shared_memory(std::size_t bytes) {
  std::ranges::fill(shared().bytes.first(bytes), std::byte{0xa5});
  std::ranges::fill(shared().cells.first(bytes), kFresh);
  std::ranges::fill(shared().cells.subspan(bytes, std::min<std::size_t>(64, kSharedBytes - bytes)),
                    Cell{});
}

}  // namespace simt
