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

/// The files that are drawn: the figure and NAME-breakdown beside it. Throws InputError when the
/// name has no ending that can be drawn.
std::vector<std::filesystem::path> plot_names(const std::filesystem::path& figure);

}  // namespace scapesim::reports
