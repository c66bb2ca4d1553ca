// SPDX-License-Identifier: Apache-2.0
// A matrix product by cuBLASLt as a framework calls it: the first algorithm of its heuristic.
#pragma once

#include <memory>

#include "kernels/device/runtime.hpp"

namespace scapesim::device {

/// C[m,n] = A[m,k] B[k,n], row by row. Which operand is stored transposed is what tells forward
/// (B as weights [n,k]), gradient of the input (B as [k,n]) and of the weights (A as [k,m]) apart.
struct GemmShape {
  long m = 0;
  long n = 0;
  long k = 0;
  enum class Layout { forward, input_gradient, weight_gradient } layout = Layout::forward;
  long batch = 1;  ///< products that lie one behind the other
};

/// bf16 in; out bf16, or fp32 added to for the gradient of the weights.
class Gemm {
 public:
  explicit Gemm(const GemmShape& shape);
  ~Gemm();
  Gemm(Gemm&&) noexcept;
  void run(const void* a, const void* b, void* c, cudaStream_t stream) const;
  std::size_t a_bytes() const;
  std::size_t b_bytes() const;
  std::size_t c_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scapesim::device
