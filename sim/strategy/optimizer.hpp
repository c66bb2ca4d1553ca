// SPDX-License-Identifier: Apache-2.0
// Bytes and state of the dense optimizers, shared by the methods.
#pragma once

#include "sim/spec/spec.hpp"

namespace scapesim::strategy {

/// fp32 moments kept per parameter: AdamS 1, AdamW and LAMB 2, SGD with momentum 1.
int moments(spec::Optimizer optimizer);

/// [M30] HBM bytes per updated parameter of one optimizer step: fused kernel, or the sum over the
/// PyTorch element-wise calls of an unfused implementation.
double update_bytes(spec::Optimizer optimizer, spec::Kernels kernels);

/// [M31] HBM bytes per parameter that every step spends outside the update: zeroing and scaling the
/// fp32 gradient buffer.
double gradient_upkeep_bytes(spec::GradientDtype dtype);

/// Bytes of one gradient element.
double gradient_bytes(spec::GradientDtype dtype);
/// Bytes of one element that a sparse method sends.
double payload_bytes(spec::PayloadDtype dtype);
/// Bytes of one parameter in compute precision.
double parameter_bytes(spec::Precision precision);

}  // namespace scapesim::strategy
