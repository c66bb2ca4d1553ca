// SPDX-License-Identifier: Apache-2.0
#include "kernels/device/gemm.hpp"

#include <cublasLt.h>

namespace scapesim::device {

namespace {

void check_lt(cublasStatus_t code, const char* call) {
  if (code != CUBLAS_STATUS_SUCCESS)
    throw kernels::CudaError(std::string(call) + ": status " +
                             std::to_string(static_cast<int>(code)));
}

constexpr std::size_t kWorkspace = std::size_t{32} << 20U;

/// A matrix of `rows` rows that is stored row by row is one of `rows` columns to cuBLASLt.
cublasLtMatrixLayout_t matrix(cudaDataType type, long rows, long columns, long batch) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_lt(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(columns),
                                      static_cast<std::uint64_t>(rows), columns),
           "cublasLtMatrixLayoutCreate");
  const int count = static_cast<int>(batch);
  const std::int64_t stride = rows * columns;
  check_lt(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                            sizeof count),
           "batch count");
  check_lt(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                            &stride, sizeof stride),
           "batch stride");
  return layout;
}

}  // namespace

struct Gemm::State {
  GemmShape shape;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr;   ///< cuBLASLt's A: our B
  cublasLtMatrixLayout_t second = nullptr;  ///< cuBLASLt's B: our A
  cublasLtMatrixLayout_t output = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  Memory workspace{kWorkspace};

  ~State() {
    static_cast<void>(cublasLtMatrixLayoutDestroy(first));
    static_cast<void>(cublasLtMatrixLayoutDestroy(second));
    static_cast<void>(cublasLtMatrixLayoutDestroy(output));
    static_cast<void>(cublasLtMatmulDescDestroy(product));
    static_cast<void>(cublasLtDestroy(handle));
  }
  bool accumulates() const { return shape.layout == GemmShape::Layout::weight_gradient; }
  void choose();
};

void Gemm::State::choose() {
  cublasLtMatmulPreference_t preference = nullptr;
  check_lt(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t bytes = kWorkspace;
  check_lt(cublasLtMatmulPreferenceSetAttribute(
               preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
           "workspace");
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t code = cublasLtMatmulAlgoGetHeuristic(
      handle, product, first, second, output, output, preference, 1, &result, &found);
  static_cast<void>(cublasLtMatmulPreferenceDestroy(preference));
  check_lt(code, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) throw kernels::CudaError("cublasLtMatmulAlgoGetHeuristic: no algorithm");
  algorithm = result.algo;
}

// Rows and columns change places: C^T = B^T A^T is what cuBLASLt computes column by column.
Gemm::Gemm(const GemmShape& shape) : state_(std::make_unique<State>()) {
  using Layout = GemmShape::Layout;
  State& s = *state_;
  s.shape = shape;
  check_lt(cublasLtCreate(&s.handle), "cublasLtCreate");
  check_lt(cublasLtMatmulDescCreate(&s.product, CUBLAS_COMPUTE_32F, CUDA_R_32F),
           "cublasLtMatmulDescCreate");
  const cublasOperation_t first = shape.layout == Layout::forward ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second =
      shape.layout == Layout::weight_gradient ? CUBLAS_OP_T : CUBLAS_OP_N;
  check_lt(
      cublasLtMatmulDescSetAttribute(s.product, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
      "transposition");
  check_lt(cublasLtMatmulDescSetAttribute(s.product, CUBLASLT_MATMUL_DESC_TRANSB, &second,
                                          sizeof second),
           "transposition");
  const auto [m, n, k, layout, batch] = shape;
  s.first = layout == Layout::forward ? matrix(CUDA_R_16BF, n, k, batch)
                                      : matrix(CUDA_R_16BF, k, n, batch);
  s.second = layout == Layout::weight_gradient ? matrix(CUDA_R_16BF, k, m, batch)
                                               : matrix(CUDA_R_16BF, m, k, batch);
  s.output = matrix(s.accumulates() ? CUDA_R_32F : CUDA_R_16BF, m, n, batch);
  s.choose();
}

Gemm::~Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;

void Gemm::run(const void* a, const void* b, void* c, cudaStream_t stream) const {
  const float one = 1;
  const float kept = state_->accumulates() ? 1.0F : 0.0F;
  check_lt(cublasLtMatmul(state_->handle, state_->product, &one, b, state_->first, a,
                          state_->second, &kept, c, state_->output, c, state_->output,
                          &state_->algorithm, state_->workspace.as<void>(), kWorkspace, stream),
           "cublasLtMatmul");
}

std::size_t Gemm::a_bytes() const {
  const GemmShape& s = state_->shape;
  return 2 * static_cast<std::size_t>(s.m * s.k * s.batch);
}
std::size_t Gemm::b_bytes() const {
  const GemmShape& s = state_->shape;
  return 2 * static_cast<std::size_t>(s.k * s.n * s.batch);
}
std::size_t Gemm::c_bytes() const {
  const GemmShape& s = state_->shape;
  return (state_->accumulates() ? 4U : 2U) * static_cast<std::size_t>(s.m * s.n * s.batch);
}

}  // namespace scapesim::device
