// SPDX-License-Identifier: Apache-2.0
// config.json of a Hugging Face model -> settings of [model].
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/toml_text.hpp"

namespace scapesim::scenario {

/// Throws InputError for a file that cannot be read, an architecture that is not known and a key
/// that is missing or of another type, each with its place.
Document read_huggingface(const std::filesystem::path& file);

/// Architectures that are known.
std::vector<std::string_view> huggingface_architectures();

}  // namespace scapesim::scenario
