// SPDX-License-Identifier: Apache-2.0
// Which keys of a recipe change what a model learns, and which only how fast it does.
#pragma once

#include <optional>
#include <string_view>

namespace scapesim::study {

/// Whether another value of the key makes the model learn differently, numerics included; none for
/// keys that are no choice of a recipe. Every key of [training], [parallelism] and [strategy] has
/// an answer (a test holds the table against the keys).
std::optional<bool> trains_otherwise(std::string_view key);

}  // namespace scapesim::study
