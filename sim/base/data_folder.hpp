// SPDX-License-Identifier: Apache-2.0
// For programs that use the library: where its data lies.
#pragma once

#include <filesystem>

namespace scapesim {

/// From now on data_folder() is this, unless $SCAPESIM_DATA names another: for an installed library
/// SCAPESIM_INSTALLED_DATA, which its CMake package defines. To be called before anything loads.
void set_data_folder(std::filesystem::path folder);

}  // namespace scapesim
