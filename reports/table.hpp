// SPDX-License-Identifier: Apache-2.0
// Aligned text tables and the number formats that all of them share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace scapesim::reports {

enum class Align { left, right };

struct Column {
  std::string head;
  Align align = Align::right;
};

/// Columns as wide as their widest cell, two spaces between, no trailing spaces, `indent` before.
std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows, std::string_view indent = "");

/// Characters a terminal shows for UTF-8 text (one per code point).
std::size_t width(std::string_view text);

std::string percent(double share);         ///< "49.5 %"
std::string signed_percent(double share);  ///< "+1.3 %", "-0.2 %"
std::string gib(Bytes size);               ///< "58.62" of a GiB column; "130.0 MiB" below one
std::string gib_text(Bytes size);          ///< "58.62 GiB", "130.0 MiB"
std::string gbps(BytesPerSecond rate);     ///< "3.62", in GB/s
std::string usd(Dollars cost);             ///< "0.01234"
std::string kwh(Joules energy);            ///< "0.5678"
/// A value of study::metrics(), in the unit that suits its name.
std::string metric_text(std::string_view metric, double value);
/// `share` of 40 characters.
std::string bar(double share);

/// One unit for all times of a table, so that they can be compared at a glance.
struct TimeUnit {
  std::string_view name;  ///< "s", "ms", "us"
  double seconds = 1;
};
TimeUnit unit_for(Seconds largest);
std::string in_unit(Seconds time, TimeUnit unit);  ///< "1461.2"

}  // namespace scapesim::reports
