// SPDX-License-Identifier: Apache-2.0
// What is measured: sizes, densities, masks, shapes of matrix products; and the bytes that a kernel
// is counted to move, as the simulator counts them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/named.hpp"

namespace scapesim::bench {

enum class Family { env, membw, kernels, gemm, attention, xfer, nccl };
inline std::span<const Named<Family>> names_of(Family*) {
  using enum Family;
  static constexpr Named<Family> kRows[] = {
      {env, "env"},   {membw, "membw"},         {kernels, "kernels"}, {gemm, "gemm"},
      {xfer, "xfer"}, {attention, "attention"}, {nccl, "nccl"}};
  return kRows;
}

/// quick: fewer sizes and shapes, as many samples.
enum class Extent { full, quick };

enum class MaskKind { random, clustered };
inline std::span<const Named<MaskKind>> names_of(MaskKind*) {
  static constexpr Named<MaskKind> kRows[] = {{MaskKind::random, "random"},
                                              {MaskKind::clustered, "clustered"}};
  return kRows;
}

/// Kernels by the name of their curve in a profile, kernel.<name>.
enum class Kernel { local_pass, select, mask_offsets, update, write_back };
inline std::span<const Named<Kernel>> names_of(Kernel*) {
  using enum Kernel;
  static constexpr Named<Kernel> kRows[] = {{local_pass, "local_pass"},
                                            {select, "select"},
                                            {mask_offsets, "mask_offsets"},
                                            {update, "update"},
                                            {write_back, "write_back"}};
  return kRows;
}

struct KernelCase {
  Kernel kernel = Kernel::local_pass;
  std::size_t elements = 0;
  double density = 0;
  MaskKind mask = MaskKind::random;
};
std::vector<KernelCase> kernel_cases(Extent extent);
/// "n=1048576 s=0.1 random"
std::string shape_of(const KernelCase& kernel_case);

/// [M51] [M43] [M53] [M54] Bytes read and written, with fp32 state, gradient and payload, a packed
/// mask and a bf16 copy of the weights.
double counted_bytes(const KernelCase& kernel_case);

/// Bytes of one copy between host and device, or within the device.
std::vector<std::size_t> copy_sizes(Extent extent);

/// C[m,n] = A[m,k] B[k,n] of a model.
struct GemmCase {
  std::string name;  ///< "llama-7b qkv"
  enum class Pass { forward, dgrad, wgrad } pass = Pass::forward;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// Lines `name,pass,m,n,k` below a header; pass is forward, dgrad or wgrad. A shape that comes
/// again is left out. Throws InputError with every line that is wrong.
std::vector<GemmCase> read_shapes(std::string_view text, const std::string& file);
/// At most `most`, evenly over the list.
std::vector<GemmCase> thinned(const std::vector<GemmCase>& cases, std::size_t most);

}  // namespace scapesim::bench
