// SPDX-License-Identifier: Apache-2.0
// A measured step against its prediction, for people and machines.
#pragma once

#include <string>

#include "sim/study/explain.hpp"

namespace scapesim::reports {

std::string explained_text(const study::Explained& explained);
/// {"schema": "scapesim.explain/1", ...}
std::string explained_json(const study::Explained& explained);

}  // namespace scapesim::reports
