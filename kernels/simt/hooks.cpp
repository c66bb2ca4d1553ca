// SPDX-License-Identifier: Apache-2.0
// What g++ and clang++ call before every memory access under -fsanitize=thread. Not their library:
// the accesses go to the shim's own record.
#include <cstddef>

#include "kernels/simt/accesses.hpp"
#include "kernels/simt/simt.hpp"

namespace simt {

#if defined(__SANITIZE_ADDRESS__)
bool sees_accesses() { return false; }
#else
bool sees_accesses() { return true; }
#endif

}  // namespace simt

#if !defined(__SANITIZE_ADDRESS__)

#define SCAPESIM_HOOKS(bytes)                                                      \
  void __tsan_read##bytes(void* p) { simt::access(p, bytes, simt::Access::read); } \
  void __tsan_write##bytes(void* p) { simt::access(p, bytes, simt::Access::write); }
// An unaligned access is one the compiler makes of several: aligned or not, its bytes count.
#define SCAPESIM_UNALIGNED_HOOKS(bytes)                                \
  void __tsan_unaligned_read##bytes(void* p) {                         \
    for (std::size_t i = 0; i < bytes; ++i)                            \
      simt::access(static_cast<char*>(p) + i, 1, simt::Access::read);  \
  }                                                                    \
  void __tsan_unaligned_write##bytes(void* p) {                        \
    for (std::size_t i = 0; i < bytes; ++i)                            \
      simt::access(static_cast<char*>(p) + i, 1, simt::Access::write); \
  }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
SCAPESIM_HOOKS(1)
SCAPESIM_HOOKS(2)
SCAPESIM_HOOKS(4)
SCAPESIM_HOOKS(8)
SCAPESIM_HOOKS(16)
SCAPESIM_UNALIGNED_HOOKS(2)
SCAPESIM_UNALIGNED_HOOKS(4)
SCAPESIM_UNALIGNED_HOOKS(8)
SCAPESIM_UNALIGNED_HOOKS(16)
void __tsan_read_range(void* p, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    simt::access(static_cast<char*>(p) + i, 1, simt::Access::read);
}
void __tsan_write_range(void* p, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    simt::access(static_cast<char*>(p) + i, 1, simt::Access::write);
}
}

#endif
