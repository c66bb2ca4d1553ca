// SPDX-License-Identifier: Apache-2.0
// Hands a result to reports/plot.py, in the first Python found that has matplotlib.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace scapesim::reports {

struct PlotOutcome {
  bool drawn = false;
  std::vector<std::string> messages;  ///< for stderr: what was written, or why nothing was
};

/// `result_json` is a scapesim.scale/1 document; it passes through a temporary file.
PlotOutcome draw_scale(const std::string& result_json, const std::filesystem::path& figure);

/// Throws InputError when no figure can be written under that name.
void check_plot_name(const std::filesystem::path& figure);

}  // namespace scapesim::reports
