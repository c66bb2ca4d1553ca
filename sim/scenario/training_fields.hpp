// SPDX-License-Identifier: Apache-2.0
// Fields of what is trained on what data: adapters, lengths of documents, a growing batch.
#pragma once

#include "sim/scenario/field.hpp"

namespace scapesim::scenario {

/// Names of PEFT's target modules: ["q_proj", "v_proj"].
Field lora_targets();
/// "700", "lognormal 700 1.1", "512 x 0.5, 4096 x 0.5", or "none".
Field document_lengths();
/// "32 32 1000000", "1024 until 252M, 2048 until 2.87T", or "none".
Field batch_ramp();

}  // namespace scapesim::scenario
