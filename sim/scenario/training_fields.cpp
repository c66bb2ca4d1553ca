// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/training_fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/count_text.hpp"

namespace scapesim::scenario {
namespace {

constexpr const char* kTargets = "such as [\"q_proj\", \"v_proj\"]";
constexpr const char* kLengths =
    "such as \"700\", \"lognormal 700 1.1\" or \"512 x 0.5, 4096 x 0.5\"";
constexpr const char* kRamp = "such as \"32 32 1000000\" or \"1024 until 252M, 2048 until 2.87T\"";
constexpr std::int64_t kLongest = 100'000'000;
constexpr std::int64_t kMostSamples = 1'000'000'000'000;
constexpr double kWidest = 4;  // of a lognormal: e^(4 4) times the mean is its mean square

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

template <class Number>
std::optional<Number> whole(std::string_view text) {
  text = trimmed(text);
  Number number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (separator != ' ' || end > 0) parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

Fault not_understood(std::string_view text, const char* example) {
  return {fmt::format("\"{}\" is not understood", text), example};
}

detail::Read<std::vector<spec::LoraTarget>> read_targets(const Value& value) {
  const auto words = detail::words_in(value);
  if (!words) return Fault{"a list of names is needed", kTargets};
  std::vector<spec::LoraTarget> targets;
  for (const std::string& word : *words) {
    const auto target = find_named<spec::LoraTarget>(word);
    if (!target) return detail::unknown_word(word, all_names<spec::LoraTarget>());
    if (std::ranges::find(targets, *target) == targets.end()) targets.push_back(*target);
  }
  std::ranges::sort(targets);
  return targets;
}

std::string targets_text(const std::vector<spec::LoraTarget>& targets) {
  std::vector<std::string> words;
  for (const spec::LoraTarget target : targets) words.push_back(detail::quoted(name_of(target)));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

detail::Read<spec::DocumentLengths> read_lognormal(std::string_view text) {
  const std::vector<std::string_view> words = parts_of(text, ' ');
  const auto mean = words.size() == 3 ? whole<double>(words[1]) : std::nullopt;
  const auto sigma = words.size() == 3 ? whole<double>(words[2]) : std::nullopt;
  if (!mean || !sigma) return not_understood(text, kLengths);
  if (!(*mean >= 1 && *mean <= static_cast<double>(kLongest)))
    return detail::outside(words[1], fmt::format("1 to {} tokens", kLongest));
  if (!(*sigma > 0 && *sigma <= kWidest))
    return detail::outside(words[2], fmt::format("above 0, up to {}", kWidest));
  return spec::DocumentLengths{.mean = *mean, .sigma = *sigma, .shares = {}};
}

detail::Read<spec::DocumentLengths> read_shares(std::string_view text) {
  constexpr double kRounding = 1e-6;
  spec::DocumentLengths lengths;
  const std::vector<std::string_view> entries = parts_of(text, ',');
  double sum = 0;
  for (const std::string_view entry : entries) {
    const std::vector<std::string_view> sides = parts_of(entry, 'x');
    const auto tokens = whole<std::int64_t>(sides[0]);
    const bool alone = sides.size() == 1 && entries.size() == 1;
    const auto share = alone               ? std::optional(1.0)
                       : sides.size() == 2 ? whole<double>(sides[1])
                                           : std::nullopt;
    if (!tokens || !share) return not_understood(entry, kLengths);
    if (*tokens < 1 || *tokens > kLongest)
      return detail::outside(entry, fmt::format("1 to {} tokens", kLongest));
    if (!(*share > 0 && *share <= 1)) return detail::outside(entry, "a share above 0, up to 1");
    lengths.shares.push_back({*tokens, *share});
    sum += *share;
  }
  if (std::abs(sum - 1) > kRounding)
    return Fault{fmt::format("the shares sum to {:g}", sum), "they sum to 1"};
  return lengths;
}

detail::Read<spec::DocumentLengths> read_lengths(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return read_shares(std::to_string(*number));
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return Fault{"a text is needed", kLengths};
  const std::string_view words = trimmed(*text);
  if (words == "none") return spec::DocumentLengths{};
  return words.starts_with("lognormal") ? read_lognormal(words) : read_shares(words);
}

std::string lengths_text(const spec::DocumentLengths& lengths) {
  if (!lengths.given()) return detail::quoted("none");
  if (lengths.mean > 0)
    return detail::quoted(fmt::format("lognormal {} {}", detail::exact(lengths.mean, ""),
                                      detail::exact(lengths.sigma, "")));
  std::vector<std::string> words;
  for (const spec::LengthShare& part : lengths.shares)
    words.push_back(fmt::format("{} x {}", part.tokens, detail::exact(part.share, "")));
  return detail::quoted(fmt::format("{}", fmt::join(words, ", ")));
}

detail::Read<spec::BatchRamp> read_increments(std::string_view text) {
  const std::vector<std::string_view> words = parts_of(text, ' ');
  std::int64_t numbers[3];
  if (words.size() != 3) return not_understood(text, kRamp);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto number = whole<std::int64_t>(words[i]);
    if (!number) return not_understood(text, kRamp);
    if (*number < 1 || *number > kMostSamples)
      return detail::outside(words[i], fmt::format("1 to {}", kMostSamples));
    numbers[i] = *number;
  }
  return spec::BatchRamp{
      .start = numbers[0], .increment = numbers[1], .samples = numbers[2], .stages = {}};
}

detail::Read<spec::BatchRamp> read_stages(std::string_view text) {
  constexpr std::size_t kMost = 100;
  spec::BatchRamp ramp;
  for (const std::string_view entry : parts_of(text, ',')) {
    const std::vector<std::string_view> words = parts_of(entry, ' ');
    const bool shaped = words.size() >= 3 && words[1] == "until" &&
                        (words.size() == 3 || (words.size() == 4 && words[3] == "tokens"));
    const auto batch = shaped ? whole<std::int64_t>(words[0]) : std::nullopt;
    const auto until = shaped ? parse_count(trimmed(words[2])) : std::nullopt;
    if (!batch || !until) return not_understood(entry, kRamp);
    if (*batch < 1 || *batch > 1'000'000'000) return detail::outside(entry, "1 to 1000000000");
    if (!ramp.stages.empty() && ramp.stages.back().until >= *until)
      return Fault{fmt::format("\"{}\" ends before the stage before it", entry),
                   "tokens count from the beginning of the training"};
    ramp.stages.push_back({*batch, *until});
  }
  if (ramp.stages.size() > kMost) return Fault{fmt::format("over {} stages", kMost), ""};
  return ramp;
}

detail::Read<spec::BatchRamp> read_ramp(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return Fault{"a text is needed", kRamp};
  const std::string_view words = trimmed(*text);
  if (words == "none") return spec::BatchRamp{};
  return words.find("until") == std::string_view::npos ? read_increments(words)
                                                       : read_stages(words);
}

std::string ramp_text(const spec::BatchRamp& ramp) {
  if (!ramp.given()) return detail::quoted("none");
  if (ramp.start > 0)
    return detail::quoted(fmt::format("{} {} {}", ramp.start, ramp.increment, ramp.samples));
  std::vector<std::string> words;
  for (const spec::BatchStage& stage : ramp.stages)
    words.push_back(fmt::format("{} until {}", stage.batch, detail::exact(stage.until, "")));
  return detail::quoted(fmt::format("{}", fmt::join(words, ", ")));
}

}  // namespace

Field lora_targets() {
  return detail::field(
      "list", detail::joined(all_names<spec::LoraTarget>()),
      [](auto& s) -> auto& { return s.training.lora.targets; }, read_targets, targets_text);
}

Field document_lengths() {
  return detail::field(
      "lengths", "TOKENS; lognormal MEAN SIGMA; TOKENS x SHARE, ...; or none",
      [](auto& s) -> auto& { return s.training.document_length; }, read_lengths, lengths_text);
}

Field batch_ramp() {
  return detail::field(
      "ramp", "START INCREMENT SAMPLES; BATCH until TOKENS, ...; or none",
      [](auto& s) -> auto& { return s.training.batch_ramp; }, read_ramp, ramp_text);
}

}  // namespace scapesim::scenario
