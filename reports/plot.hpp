// SPDX-License-Identifier: Apache-2.0
// Hands results to reports/report.py, in the first Python found that has matplotlib.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace scapesim::reports {

enum class Drawing { done, failed, bad_input };

struct PlotOutcome {
  Drawing drawing = Drawing::failed;
  std::vector<std::string> messages;  ///< what was written, or why nothing was
};

/// `result_json` is a scapesim.scale/1 document; it passes through a temporary file.
PlotOutcome draw_scale(const std::string& result_json, const std::filesystem::path& figure);

/// The files that are drawn: the figure and NAME-breakdown beside it. Throws InputError when the
/// name has no ending that can be drawn.
std::vector<std::filesystem::path> plot_names(const std::filesystem::path& figure);

struct ReportOptions {
  std::string formats;  ///< "png,svg,pdf"
  std::string date;     ///< in the corner of figures; empty: none
};
/// Figures of all results and index.html into `folder`, which is made when it is missing. With bad
/// input the messages are one problem each.
PlotOutcome draw_report(std::span<const std::string> results, const std::filesystem::path& folder,
                        const ReportOptions& options);

}  // namespace scapesim::reports
