// SPDX-License-Identifier: Apache-2.0
// Reads scapesim.profile/1 and reports everything that is wrong with a file at once.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/cost/profile.hpp"

namespace scapesim::cost {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "scapesim.profile/1";

/// Finds places of keys and collects what is wrong.
struct Reader {
  std::string_view text;
  std::string file;
  Problems problems;

  Place place_at(std::size_t offset) const {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t start = before.rfind('\n');
    const std::size_t column = start == before.npos ? before.size() : before.size() - start - 1;
    return {file, static_cast<int>(line), static_cast<int>(column) + 1};
  }

  /// Place of the first `"key"` in the text; only the file when there is none.
  Place place_of(std::string_view key) const {
    const std::size_t found = text.find("\"" + std::string(key) + "\"");
    return found == text.npos ? Place{file, 0, 0} : place_at(found);
  }

  void add(std::string_view key, std::string_view place_key, std::string what,
           std::string hint = {}) {
    problems.add(place_of(place_key), std::string(key), std::move(what), std::move(hint));
  }
};

std::vector<std::string_view> names_in(std::span<const ProfileKey> keys) {
  std::vector<std::string_view> list;
  for (const ProfileKey& key : keys) list.push_back(key.name);
  return list;
}

const ProfileKey* find_key(std::span<const ProfileKey> keys, std::string_view name) {
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const ProfileKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string text_member(Reader& in, const Json& object, std::string_view name,
                        std::string_view owner) {
  const auto found = object.find(name);
  if (found != object.end() && found->is_string()) return found->get<std::string>();
  in.add(owner.empty() ? name : std::string(owner) + "." + std::string(name),
         owner.empty() ? name : owner, found == object.end() ? "missing" : "must be text");
  return {};
}

double number_member(Reader& in, const Json& object, std::string_view name, std::string_view owner,
                     std::optional<double> fallback = {}) {
  const auto found = object.find(name);
  if (found == object.end() && fallback) return *fallback;
  if (found != object.end() && found->is_number()) {
    const auto value = found->get<double>();
    if (std::isfinite(value)) return value;
  }
  in.add(std::string(owner) + "." + std::string(name), owner,
         found == object.end() ? "missing" : "must be a finite number in SI units");
  return fallback.value_or(0);
}

template <class E>
E named_member(Reader& in, const Json& object, std::string_view name, std::string_view owner) {
  const std::string word = text_member(in, object, name, owner);
  if (word.empty()) return E{};
  if (const auto value = find_named<E>(word)) return *value;
  in.add(std::string(owner) + "." + std::string(name), owner, "unknown word \"" + word + "\"",
         did_you_mean(word, all_names<E>()));
  return E{};
}

Origin origin_of(Reader& in, const Json& object, std::string_view owner) {
  return {named_member<Provenance>(in, object, "provenance", owner),
          text_member(in, object, "source", owner)};
}

void refuse_unknown(Reader& in, const Json& object, std::string_view owner,
                    std::initializer_list<std::string_view> known) {
  const std::vector<std::string_view> words(known);
  for (const auto& [name, value] : object.items())
    if (std::find(words.begin(), words.end(), name) == words.end())
      in.add(owner.empty() ? name : std::string(owner) + "." + name, name, "unknown key",
             did_you_mean(name, words));
}

Number number_of(Reader& in, const Json& object, const ProfileKey& key) {
  refuse_unknown(in, object, key.name, {"value", "low", "high", "factor", "provenance", "source"});
  const std::size_t problems_before = in.problems.list().size();
  Number number;
  number.value = number_member(in, object, "value", key.name);
  number.low = number_member(in, object, "low", key.name);
  number.high = number_member(in, object, "high", key.name);
  number.factor = named_member<Factor>(in, object, "factor", key.name);
  number.origin = origin_of(in, object, key.name);
  // Ranges are judged only when every member could be read.
  if (in.problems.list().size() > problems_before) return number;
  if (number.value < key.lowest || number.value > key.highest)
    in.add(key.name, key.name, fmt::format("{} is out of range", number.value),
           fmt::format("{:g} to {:g}", key.lowest, key.highest));
  if (!(number.low <= number.value && number.value <= number.high))
    in.add(key.name, key.name,
           fmt::format("low {} <= value {} <= high {} does not hold", number.low, number.value,
                       number.high));
  if (number.value > 0 && number.low <= 0)
    in.add(key.name, key.name, "low must be positive where value is");
  return number;
}

void read_points(Reader& in, const Json& object, const ProfileKey& key, Curve& curve) {
  const auto points = object.find("points");
  if (points == object.end() || !points->is_array() || points->empty()) {
    in.add(std::string(key.name) + ".points", key.name, "must be a list of [x, y] pairs");
    return;
  }
  for (const Json& point : *points) {
    const bool pair =
        point.is_array() && point.size() == 2 && point[0].is_number() && point[1].is_number();
    if (!pair || point[0].get<double>() <= 0) {
      in.add(std::string(key.name) + ".points", key.name,
             "each point must be [x, y] with x above 0", point.dump());
      return;
    }
    const auto y = point[1].get<double>();
    if (!(y >= key.lowest && y <= key.highest))
      in.add(std::string(key.name) + ".points", key.name, fmt::format("y {} is out of range", y),
             fmt::format("{:g} to {:g}", key.lowest, key.highest));
    curve.points.push_back({point[0].get<double>(), y});
  }
  const auto later_not_larger = [](const auto& a, const auto& b) { return a[0] >= b[0]; };
  if (std::adjacent_find(curve.points.begin(), curve.points.end(), later_not_larger) !=
      curve.points.end())
    in.add(std::string(key.name) + ".points", key.name, "x must ascend");
}

Curve curve_of(Reader& in, const Json& object, const ProfileKey& key) {
  refuse_unknown(
      in, object, key.name,
      {"x", "y", "points", "low_factor", "high_factor", "factor", "provenance", "source"});
  Curve curve;
  curve.x = text_member(in, object, "x", key.name);
  curve.y = text_member(in, object, "y", key.name);
  curve.low_factor = number_member(in, object, "low_factor", key.name, 1.0);
  curve.high_factor = number_member(in, object, "high_factor", key.name, 1.0);
  curve.factor = named_member<Factor>(in, object, "factor", key.name);
  curve.origin = origin_of(in, object, key.name);
  read_points(in, object, key, curve);
  if (!(0 < curve.low_factor && curve.low_factor <= 1 && curve.high_factor >= 1))
    in.add(key.name, key.name, "0 < low_factor <= 1 <= high_factor does not hold");
  return curve;
}

/// Reads every entry of the table `section`; unknown, missing and malformed ones become problems.
template <class Entry, class Read>
void read_table(Reader& in, const Json& root, std::string_view section,
                std::span<const ProfileKey> keys, std::map<std::string, Entry, std::less<>>& out,
                Read read) {
  const auto table = root.find(section);
  if (table == root.end() || !table->is_object()) {
    in.add(section, section, table == root.end() ? "missing" : "must be an object");
    return;
  }
  for (const auto& [name, object] : table->items()) {
    const ProfileKey* key = find_key(keys, name);
    if (key == nullptr)
      in.add(name, name, "unknown key", did_you_mean(name, names_in(keys)));
    else if (!object.is_object())
      in.add(name, name, "must be an object with value, low, high, factor, provenance, source");
    else
      out.emplace(name, read(in, object, *key));
  }
  for (const ProfileKey& key : keys)
    if (key.required && !table->contains(key.name))
      in.add(key.name, section, "missing", std::string(key.help));
}

/// Follows the parser through nested objects: the newest key of each, and keys given twice.
class KeyWatch {
 public:
  explicit KeyWatch(Reader& in) : in_(in) {}

  void see(Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event != Json::parse_event_t::key) return;
    open_.back().newest = parsed.get<std::string>();
    if (!open_.back().seen.insert(open_.back().newest).second) add("appears twice in one object");
  }
  /// A problem of the newest key, placed at the entry of a table that it belongs to.
  void add(std::string what) const {
    const std::string key = open_.empty() ? "" : open_.back().newest;
    if (open_.size() <= 2) return in_.add(key, key, std::move(what));
    const std::string& entry = open_[1].newest;
    in_.add(entry + "." + key, entry, std::move(what));
  }

 private:
  struct Object {
    std::set<std::string> seen;
    std::string newest;
  };
  Reader& in_;
  std::vector<Object> open_;
};

Json parse_json(Reader& in) {
  KeyWatch watch(in);
  try {
    return Json::parse(in.text, [&](int, Json::parse_event_t event, const Json& parsed) {
      watch.see(event, parsed);
      return true;
    });
  } catch (const Json::parse_error& error) {
    in.problems.add(in.place_at(error.byte == 0 ? 0 : error.byte - 1), "", "not valid JSON",
                    "the file may be truncated, or has a character out of place here");
  } catch (const Json::out_of_range&) {
    watch.add("a number is too large for double precision");
  }
  in.problems.raise();
  return {};
}

std::vector<std::string> shipped_profiles() {
  std::vector<std::string> list;
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator(data_folder() / "calib" / "profiles", failed))
    if (entry.path().extension() == ".json") list.push_back(entry.path().stem().string());
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

namespace {

/// What several numbers must obey together.
void check_together(Reader& in, const Profile& profile) {
  for (const char* key : {"gemm.efficiency", "gemm.efficiency_fp8"}) {
    if (!profile.has(key) || !profile.has("gemm.scale")) continue;
    const double share = profile.number(key) * profile.number("gemm.scale");
    if (share > 1)
      in.add(key, key, fmt::format("times gemm.scale is {:.4g}: more than the peak", share),
             "the product is the sustained share of peak, 1 at most");
  }
}

}  // namespace

Profile parse_profile(std::string_view json, const std::string& file) {
  Reader in{json, file, {}};
  const Json root = parse_json(in);
  if (!root.is_object()) {
    in.problems.add({file, 1, 1}, "", "must be a JSON object");
    in.problems.raise();
  }
  refuse_unknown(in, root, "",
                 {"schema", "id", "machine", "note", "numbers", "curves", "provenance"});
  const std::string schema = text_member(in, root, "schema", "");
  if (!schema.empty() && schema != kSchema)
    in.add("schema", "schema", "\"" + schema + "\" is not understood",
           "this version reads " + std::string(kSchema));
  Profile profile;
  profile.id = text_member(in, root, "id", "");
  profile.machine = text_member(in, root, "machine", "");
  if (root.contains("note")) profile.note = text_member(in, root, "note", "");
  read_table(in, root, "numbers", number_keys(), profile.numbers, number_of);
  read_table(in, root, "curves", curve_keys(), profile.curves, curve_of);
  if (in.problems.empty()) check_together(in, profile);
  in.problems.raise();
  return profile;
}

std::string profile_json(const Profile& profile) {
  nlohmann::ordered_json root = {{"schema", kSchema},
                                 {"id", profile.id},
                                 {"machine", profile.machine},
                                 {"note", profile.note},
                                 {"numbers", nlohmann::ordered_json::object()},
                                 {"curves", nlohmann::ordered_json::object()}};
  for (const auto& [key, number] : profile.numbers)
    root["numbers"][key] = {{"value", number.value},
                            {"low", number.low},
                            {"high", number.high},
                            {"factor", name_of(number.factor)},
                            {"provenance", name_of(number.origin.kind)},
                            {"source", number.origin.source}};
  for (const auto& [key, curve] : profile.curves)
    root["curves"][key] = {{"x", curve.x},
                           {"y", curve.y},
                           {"points", curve.points},
                           {"low_factor", curve.low_factor},
                           {"high_factor", curve.high_factor},
                           {"factor", name_of(curve.factor)},
                           {"provenance", name_of(curve.origin.kind)},
                           {"source", curve.origin.source}};
  return root.dump(1) + "\n";
}

Profile load_profile(const std::string& id_or_path, const std::filesystem::path& relative_to) {
  const bool is_path = id_or_path.ends_with(".json") || id_or_path.find('/') != std::string::npos;
  if (is_path) {
    const std::filesystem::path path = relative_to / id_or_path;
    return parse_profile(read_file(path, "calibration.profile"), path.string());
  }
  const std::vector<std::string> shipped = shipped_profiles();
  if (std::find(shipped.begin(), shipped.end(), id_or_path) == shipped.end()) {
    const std::vector<std::string_view> known(shipped.begin(), shipped.end());
    Problems problems;
    problems.add({}, "calibration.profile", "no shipped profile is called \"" + id_or_path + "\"",
                 did_you_mean(id_or_path, known));
    problems.raise();
  }
  const auto path = data_folder() / "calib" / "profiles" / (id_or_path + ".json");
  return parse_profile(read_file(path, "calibration.profile"),
                       "calib/profiles/" + id_or_path + ".json");
}

}  // namespace scapesim::cost
