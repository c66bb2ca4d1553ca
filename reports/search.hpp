// SPDX-License-Identifier: Apache-2.0
// The best splits of a model, and why the others lose.
#pragma once

#include <string>

#include "sim/study/search.hpp"

namespace scapesim::reports {

/// `search`; `file` is the scenario's as the user named it.
std::string search_text(const study::SearchResult& result, const std::string& file);
std::string search_json(const study::SearchResult& result);

}  // namespace scapesim::reports
