// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/row.hpp"

#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"

namespace scapesim::bench {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json provenance_json(const Provenance& provenance) {
  return {{"machine", provenance.machine},
          {"gpu", provenance.gpu},
          {"driver", provenance.driver},
          {"date", provenance.date},
          {"tool", provenance.tool}};
}

Json head(const std::string& kind, const std::string& name) {
  return {{"schema", "scapesim.bench/1"}, {"kind", kind}, {"name", name}};
}

std::string line(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

bool kept(const std::string& name) {
  return name.starts_with("NCCL_") || name.starts_with("CUDA_");
}

}  // namespace

std::string line_of(const Row& row, const Provenance& provenance) {
  Json json = head(row.kind, row.name);
  for (const auto& [key, value] : row.texts) json[key] = value;
  for (const auto& [key, value] : row.numbers) json[key] = value;
  const Summary summary = summary_of(row.measured.samples);
  if (row.bytes) {
    const double rate = *row.bytes / summary.median;
    json["bytes"] = *row.bytes;
    json["rate_Bps"] = rate;
    json["copy_share"] = row.copy_rate ? Json(rate / *row.copy_rate) : Json();
  }
  json["median_s"] = summary.median;
  json["p5_s"] = summary.p5;
  json["p95_s"] = summary.p95;
  json["mad_s"] = summary.mad;
  json["repeat_spread"] = row.measured.repeat_spread;
  json["samples_s"] = row.measured.samples;
  json["device"] = {{"sm_clock_Hz", or_null(row.state.sm_clock_hz)},
                    {"memory_clock_Hz", or_null(row.state.memory_clock_hz)},
                    {"temperature_C", or_null(row.state.temperature_c)},
                    {"throttle_reasons", or_null(row.state.throttle_reasons)}};
  json["provenance"] = provenance_json(provenance);
  return line(json);
}

std::string environment_line(const std::map<std::string, std::string>& variables,
                             const std::map<std::string, std::string>& members,
                             const Provenance& provenance) {
  Json json = head("environment", "env");
  Json& list = json["variables"] = Json::object();
  for (const auto& [key, value] : variables)
    if (kept(key)) list[key] = value;
  for (const auto& [key, value] : members) json[key] = value;
  json["provenance"] = provenance_json(provenance);
  return line(json);
}

// "x": measurements of before are not overwritten.
RowFile::RowFile(const std::filesystem::path& path)
    : path_(path), file_(std::fopen(path.c_str(), "wx")) {
  if (!file_)
    throw InputError(Problem{{},
                             "--output",
                             path.string() + " cannot be written, or is there already",
                             "measurements are never overwritten: take a new name"});
}

void RowFile::write(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0)
    throw std::runtime_error(path_.string() + ": cannot be written");
}

}  // namespace scapesim::bench
