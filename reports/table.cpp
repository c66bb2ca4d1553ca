// SPDX-License-Identifier: Apache-2.0
#include "reports/table.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/base/unit_text.hpp"

namespace scapesim::reports {
namespace {

std::string padded(const std::string& text, std::size_t to, Align align) {
  const std::string spaces(to - std::min(to, width(text)), ' ');
  return align == Align::left ? text + spaces : spaces + text;
}

}  // namespace

std::size_t width(std::string_view text) {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::ranges::count_if(text, starts));
}

std::string table(const std::vector<Column>& columns,
                  const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widest;
  std::vector<std::string> heads;
  for (const Column& column : columns) {
    widest.push_back(width(column.head));
    heads.push_back(column.head);
  }
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widest[i] = std::max(widest[i], width(row[i]));
  std::string out;
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i)
      line += (i == 0 ? "" : "  ") + padded(row[i], widest[i], columns[i].align);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  if (std::ranges::any_of(heads, [](const std::string& head) { return !head.empty(); })) add(heads);
  for (const auto& row : rows) add(row);
  return out;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string signed_percent(double share) {
  constexpr double kMost = 1e4;  // beyond it a percentage says nothing, nor does infinity
  if (share >= kMost) return "over +1000000 %";
  const std::string text = fmt::format("{:+.1f} %", 100 * share);
  return text == "-0.0 %" ? "+0.0 %" : text;
}

std::string gib(Bytes size) {
  constexpr double kMiB = 1048576, kGiB = 1024 * kMiB;
  if (size.si() == 0 || std::abs(size.si()) >= kGiB) return fmt::format("{:.2f}", size.si() / kGiB);
  return fmt::format("{:.1f} MiB", size.si() / kMiB);
}

std::string gib_text(Bytes size) {
  const std::string text = gib(size);
  return text.ends_with("MiB") ? text : text + " GiB";
}

std::string usd(Dollars cost) { return fmt::format("{:.4g}", cost.si()); }

std::string kwh(Joules energy) {
  constexpr double kJoules = 3.6e6;
  return fmt::format("{:.4g}", energy.si() / kJoules);
}

std::string metric_text(std::string_view metric, double value) {
  if (metric.ends_with("_B")) return text_of(Bytes(value));
  if (metric == "mfu") return percent(value);
  if (metric.ends_with("_per_s")) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4f}", value);
}

std::string gbps(BytesPerSecond rate) { return fmt::format("{:.2f}", rate.si() / 1e9); }

std::string bar(double share) {
  constexpr double kLength = 40;
  const double length = std::clamp(std::round(share * kLength), 0.0, kLength);
  return std::string(static_cast<std::size_t>(length), '#');
}

TimeUnit unit_for(Seconds largest) {
  if (largest >= Seconds(1)) return {"s", 1};
  if (largest >= Seconds(1e-3)) return {"ms", 1e-3};
  return {"us", 1e-6};
}

std::string in_unit(Seconds time, TimeUnit unit) {
  const int decimals = unit.seconds == 1 ? 4 : 2;
  return fmt::format("{:.{}f}", time.si() / unit.seconds, decimals);
}

}  // namespace scapesim::reports
