// SPDX-License-Identifier: Apache-2.0
// The version comes from the build.
#include "sim/base/version.hpp"

namespace scapesim {

std::string_view version() { return SCAPESIM_VERSION; }

}  // namespace scapesim
