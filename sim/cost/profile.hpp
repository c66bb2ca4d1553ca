// SPDX-License-Identifier: Apache-2.0
// A calibration profile: every number a prediction rests on, with its range and where it comes
// from.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/named.hpp"
#include "sim/base/units.hpp"

namespace scapesim::cost {

/// From strongest to weakest.
enum class Provenance { measured, imported, published, datasheet, assumed };
inline std::span<const Named<Provenance>> names_of(Provenance*) {
  using enum Provenance;
  static constexpr Named<Provenance> kRows[] = {{measured, "measured"},
                                                {imported, "imported"},
                                                {published, "published"},
                                                {datasheet, "datasheet"},
                                                {assumed, "assumed"}};
  return kRows;
}

/// Numbers of one factor err together (model: what the equations leave out): a draw moves them by
/// the same quantile.
enum class Factor { network, latency, gemm, attention, hbm, copy, host, power, model };
inline std::span<const Named<Factor>> names_of(Factor*) {
  using enum Factor;
  static constexpr Named<Factor> kRows[] = {
      {network, "network"},     {latency, "latency"}, {gemm, "gemm"},
      {attention, "attention"}, {hbm, "hbm"},         {copy, "copy"},
      {host, "host"},           {power, "power"},     {model, "model"}};
  return kRows;
}

/// Where a number comes from: kind and a sentence (source, date, tool, file).
struct Origin {
  Provenance kind = Provenance::assumed;
  std::string source;
};

/// A number in SI units with its 90 % range.
struct Number {
  double value = 0;
  double low = 0;
  double high = 0;
  Factor factor = Factor::host;
  Origin origin;
};

/// A sampled function: y over x, x ascending, log-log interpolated between points and flat outside;
/// [low, high] scale y for the 90 % range.
struct Curve {
  std::string x;  ///< what x is, with unit ("size_B")
  std::string y;
  std::vector<std::array<double, 2>> points;
  double low_factor = 1;
  double high_factor = 1;
  Factor factor = Factor::host;
  Origin origin;

  double at(double x_value) const;
  /// False when x_value lies outside the sampled range: the result should carry a warning.
  bool covers(double x_value) const;
};

/// A profile as read from calib/profiles/<id>.json.
struct Profile {
  std::string id;
  std::string machine;
  std::string note;
  std::map<std::string, Number, std::less<>> numbers;
  std::map<std::string, Curve, std::less<>> curves;
  std::vector<Profile> others;  ///< of the job's other GPUs, in the scenario's order; not in files

  /// Throws InternalError for a key that read_profile() does not guarantee.
  double number(std::string_view key) const;
  const Curve& curve(std::string_view key) const;
  bool has(std::string_view key) const { return numbers.contains(key); }
};

/// One key that profiles may hold.
struct ProfileKey {
  std::string_view name;  ///< "network.transport_cap_Bps"
  std::string_view help;
  double lowest;
  double highest;
  bool required;
};
std::span<const ProfileKey> number_keys();
std::span<const ProfileKey> curve_keys();  ///< lowest and highest bound y

/// Reads and validates a profile (id of a shipped one, or a path). Throws InputError that lists
/// every problem: JSON syntax with line and column, missing or unknown keys with the nearest known
/// one, ranges, low <= value <= high, provenance.
Profile load_profile(const std::string& id_or_path, const std::filesystem::path& relative_to);
Profile parse_profile(std::string_view json, const std::string& file);

/// The profile as a scapesim.profile/1 file; parse_profile() of it gives the same profile.
std::string profile_json(const Profile& profile);

/// Weakest provenance among the numbers and curves of a profile.
Provenance weakest(const Profile& profile);

/// Inverse of the standard normal distribution function, Acklam's rational approximation (relative
/// error under 1.2e-9).
double normal_quantile(double p);

/// Quantile position of every factor in one draw (standard normal).
using Draw = std::array<double, 9>;
/// `count` stratified draws of all factors, the same for every call (fixed seed).
std::vector<Draw> draws(int count);
/// The profile with every number moved along its range by the draw: value * exp(z sigma), sigma
/// from [low, high] read as a 90 % range.
Profile perturbed(const Profile& profile, const Draw& draw);

}  // namespace scapesim::cost
