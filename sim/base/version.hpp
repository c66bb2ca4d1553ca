// SPDX-License-Identifier: Apache-2.0
// The version that every result carries.
#pragma once

#include <string_view>

namespace scapesim {

/// "0.1.0", as in CMakeLists.txt.
std::string_view version();

}  // namespace scapesim
