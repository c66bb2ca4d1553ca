// SPDX-License-Identifier: Apache-2.0
// Kernels of a trace: class by name, totals and medians per kernel, overlap of NCCL and the rest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calib/observations.hpp"

namespace scapesim::calib {

/// Class by parts of the lower-case name, the first class that matches:
///   nccl       nccl
///   attention  flash, fmha, attention, attn, sdpa
///   gemm       gemm, gemv, nvjet, cutlass, xmma, matmul, splitk
///   pass       elementwise, reduce, softmax, norm, multi_tensor, adam, triton, copy, cat, memset,
///              scatter, gather, index, dropout, fill, embedding
KernelClass kernel_class(std::string_view name);

/// One run of a kernel.
struct KernelSpan {
  Seconds begin;
  Seconds end;
  int device = 0;
  KernelClass kind = KernelClass::other;
  std::string name;
};

/// Adds one sample per kernel name and one overlap per device.
void add_kernels(const std::vector<KernelSpan>& spans, const std::string& file, Observations& into);

}  // namespace scapesim::calib
