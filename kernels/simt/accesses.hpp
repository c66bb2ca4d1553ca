// SPDX-License-Identifier: Apache-2.0
// Device memory of the SIMT shim and the record of who touched which byte of it, and when: two
// accesses of a launch by different threads, one of them a plain write, need a barrier of their
// block between them, or a collective of their warp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace simt {

/// When and by whom: blocks are numbered over all launches, from 1; intervals of a block begin at
/// its barriers, those of a warp also at its collectives.
struct Moment {
  std::uint32_t block = 0;
  std::uint32_t interval = 0;
  std::uint32_t warp_interval = 0;
  std::uint32_t thread = 0;
};

enum class Access { read, write, atomic };

/// What is wrong with an access, or empty. Memory that is not device or shared memory is ignored.
/// first_block: of the running launch.
std::string fault_of(const void* pointer, std::size_t bytes, Access access, const Moment& now,
                     std::uint32_t first_block);

/// From the compiler's calls, on every access of a kernel.
void access(const void* pointer, std::size_t bytes, Access kind);

void* allocate(std::size_t bytes);  ///< null when there is no more
void release(void* pointer);
/// The host has written there.
void set_written(const void* pointer, std::size_t bytes);

/// The one shared memory, 227 KiB as on sm_90; filled with rubbish before each block.
inline constexpr std::size_t kSharedBytes = 227 * 1024;
std::byte* shared_memory();
void new_shared_memory(std::size_t bytes);

}  // namespace simt
