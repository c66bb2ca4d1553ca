// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/optimizer.hpp"

#include "sim/base/check.hpp"

namespace scapesim::strategy {

namespace {

// One PyTorch element-wise call on fp32 tensors, bytes per element.
constexpr double kInPlace = 8;      // x op= scalar: read x, write x
constexpr double kWithTensor = 12;  // x op= y: read x y, write x
constexpr double kWithTwo = 16;     // x op= y, z
constexpr double kOutOfPlace = 8;   // y = op x
constexpr double kNorm = 4;         // read
constexpr double kCastToBf16 = 6;   // read fp32, write bf16

// v = b2 m^2 + (1-b2) g^2 from the old m; m = b1 m + (1-b1) g; bias correction, root, eps; decay;
// update. AdamS keeps no second moment (scape.md eq., arXiv 2505.16363).
constexpr double kAdamSUnfused = kOutOfPlace + kInPlace + kWithTensor + kInPlace + kWithTensor +
                                 3 * kInPlace + kInPlace + kWithTwo;
// m and v in place, root and bias correction into a new tensor, eps, decay, update.
constexpr double kAdamWUnfused = kInPlace + kWithTensor + kInPlace + kWithTensor + kOutOfPlace +
                                 2 * kInPlace + kInPlace + kWithTwo;
constexpr double kSgdUnfused = kInPlace + kWithTensor + kInPlace + kWithTensor;
constexpr double kLambUnfused = kAdamWUnfused + 2 * kNorm + kInPlace;
static_assert(kAdamSUnfused == 96 && kAdamWUnfused == 88);

}  // namespace

int moments(spec::Optimizer optimizer) {
  switch (optimizer) {
    case spec::Optimizer::adams:
    case spec::Optimizer::sgd:
      return 1;
    case spec::Optimizer::adamw:
    case spec::Optimizer::lamb:
      return 2;
  }
  throw InternalError("optimizer");
}

// [M30] Fused: weight, gradient and each moment once in, weight and moments once out (fp32). The
// gradient norm and the bf16 copy are separate calls of an unfused step.
double update_bytes(spec::Optimizer optimizer, spec::Kernels kernels) {
  if (kernels == spec::Kernels::fused) return 4 + 8 + 8.0 * moments(optimizer);
  constexpr double kAround = kNorm + kCastToBf16;
  switch (optimizer) {
    case spec::Optimizer::adams:
      return kAdamSUnfused + kAround;
    case spec::Optimizer::adamw:
      return kAdamWUnfused + kAround;
    case spec::Optimizer::sgd:
      return kSgdUnfused + kAround;
    case spec::Optimizer::lamb:
      return kLambUnfused + kAround;
  }
  throw InternalError("optimizer");
}

double gradient_bytes(spec::GradientDtype dtype) {
  return dtype == spec::GradientDtype::fp32 ? 4 : 2;
}

// [M31] Scale by 1/P (read, write), zero (write).
double gradient_upkeep_bytes(spec::GradientDtype dtype) { return 3 * gradient_bytes(dtype); }

double payload_bytes(spec::PayloadDtype dtype) {
  switch (dtype) {
    case spec::PayloadDtype::fp32:
      return 4;
    case spec::PayloadDtype::bf16:
      return 2;
    case spec::PayloadDtype::fp8:
      return 1;
  }
  throw InternalError("type of the payload");
}

double parameter_bytes(spec::Precision precision) {
  return precision == spec::Precision::fp32 ? 4 : 2;
}

}  // namespace scapesim::strategy
