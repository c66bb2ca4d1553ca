// SPDX-License-Identifier: Apache-2.0
#include "reports/calibrated.hpp"

#include <nlohmann/json.hpp>

#include "sim/base/version.hpp"

namespace scapesim::reports {
namespace {

using Json = nlohmann::ordered_json;

Json row_json(const calib::ResidualSet& set, const calib::Residual& row) {
  Json json = {{set.x, row.x},
               {"measured_s", row.measured.si()},
               {"fitted_s", row.fitted.si()},
               {"residual", row.fitted / row.measured - 1}};
  if (row.measured_busbw) json["measured_busbw_Bps"] = row.measured_busbw->si();
  if (row.fitted_busbw) json["fitted_busbw_Bps"] = row.fitted_busbw->si();
  return json;
}

}  // namespace

std::string calibration_json(const calib::Calibration& calibration,
                             const std::vector<std::string>& inputs) {
  Json fits = Json::array();
  for (const calib::ResidualSet& set : calibration.residuals) {
    Json rows = Json::array();
    for (const calib::Residual& row : set.rows) rows.push_back(row_json(set, row));
    fits.push_back({{"name", set.name}, {"family", set.family}, {"x", set.x}, {"rows", rows}});
  }
  const Json document = {{"schema", "scapesim.calibration/1"},
                         {"calibration",
                          {{"id", calibration.profile.id},
                           {"weakest_provenance", name_of(cost::weakest(calibration.profile))}}},
                         {"version", version()},
                         {"inputs", inputs},
                         {"fits", fits},
                         {"gaps", calibration.gaps}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace scapesim::reports
