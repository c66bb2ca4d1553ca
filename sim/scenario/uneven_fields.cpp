// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/uneven_fields.hpp"

#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/scenario/load.hpp"

namespace scapesim::scenario {
namespace {

constexpr const char* kStragglers = "such as [\"GPU 3 = 1.2\", \"node 4-7 = 1.05\"]";
constexpr const char* kOtherGpus = "such as [\"node 4-7 = dgx-a100, a100-sxm-80gb\"]";
constexpr double kMostSlowdown = 100;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

template <class Number>
bool read_whole(std::string_view text, Number& number) {
  text = trimmed(text);
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

/// What stands before and behind the first separator; none without one.
std::optional<std::pair<std::string_view, std::string_view>> cut(std::string_view text,
                                                                 char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair{trimmed(text.substr(0, at)), trimmed(text.substr(at + 1))};
}

/// "3" or "4-7".
struct Numbers {
  int first = 0;
  int last = 0;
};
std::optional<Numbers> read_numbers(std::string_view text) {
  Numbers numbers;
  const auto ends = cut(text, '-');
  if (!read_whole(ends ? ends->first : text, numbers.first)) return std::nullopt;
  numbers.last = numbers.first;
  if (ends && !read_whole(ends->second, numbers.last)) return std::nullopt;
  if (numbers.first < 0 || numbers.last < numbers.first) return std::nullopt;
  return numbers;
}

std::string text_of_numbers(int first, int last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

std::optional<Numbers> behind(std::string_view word, std::string_view text) {
  if (!text.starts_with(word)) return std::nullopt;
  return read_numbers(text.substr(word.size()));
}

Fault not_understood(std::string_view entry, const char* example) {
  return {fmt::format("\"{}\" is not understood", entry), example};
}

/// A list of texts, each read by `read`; the first fault counts.
template <class T, class ReadEntry>
detail::Read<std::vector<T>> read_entries(const Value& value, const char* example, ReadEntry read) {
  constexpr std::size_t kMost = 10'000;
  const auto* words = std::get_if<std::vector<std::string>>(&value);
  if (words == nullptr) return Fault{"a list of texts is needed", example};
  if (words->size() > kMost) return Fault{fmt::format("over {} entries", kMost), ""};
  std::vector<T> list;
  for (const std::string& word : *words) {
    detail::Read<T> entry = read(word);
    if (Fault* fault = std::get_if<Fault>(&entry)) return std::move(*fault);
    list.push_back(std::get<T>(std::move(entry)));
  }
  return list;
}

template <class T, class Text>
std::string entries_text(const std::vector<T>& list, Text text) {
  std::vector<std::string> words;
  for (const T& entry : list) words.push_back(detail::quoted(text(entry)));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

detail::Read<spec::Straggler> read_straggler(std::string_view entry) {
  const auto sides = cut(entry, '=');
  if (!sides) return not_understood(entry, kStragglers);
  spec::Straggler straggler;
  std::optional<Numbers> numbers = behind("GPU ", sides->first);
  if (!numbers) {
    numbers = behind("node ", sides->first);
    straggler.part = spec::JitterScope::node;
  }
  if (!numbers || !read_whole(sides->second, straggler.slowdown))
    return not_understood(entry, kStragglers);
  straggler.first = numbers->first;
  straggler.last = numbers->last;
  if (!(straggler.slowdown >= 1 && straggler.slowdown <= kMostSlowdown))
    return detail::outside(entry, fmt::format("1 to {} times", kMostSlowdown));
  return straggler;
}

std::string text_of_straggler(const spec::Straggler& straggler) {
  return fmt::format("{} {} = {}", straggler.part == spec::JitterScope::node ? "node" : "GPU",
                     text_of_numbers(straggler.first, straggler.last), straggler.slowdown);
}

detail::Read<spec::OtherGpus> read_other(std::string_view entry) {
  const auto sides = cut(entry, '=');
  const auto names = sides ? cut(sides->second, ',') : std::nullopt;
  const auto numbers = sides ? behind("node ", sides->first) : std::nullopt;
  if (!numbers || !names || names->first.empty() || names->second.empty())
    return not_understood(entry, kOtherGpus);
  spec::OtherGpus other{.first = numbers->first,
                        .last = numbers->last,
                        .cluster = std::string(names->first),
                        .profile = std::string(names->second)};
  try {
    const spec::Cluster cluster = load_cluster(other.cluster, {});
    other.gpu = cluster.gpu;
    other.power = cluster.gpu_power;
    other.price = cluster.gpu_price;
  } catch (const InputError& failure) {
    const Problem& first = failure.problems().front();
    return Fault{fmt::format("\"{}\": {}", entry, first.what), first.hint};
  }
  return other;
}

}  // namespace

namespace detail {

Read<double> read_share(const Value& value, Range<double> range) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return read_number(value, range);
  std::string_view digits = *text;
  double percent = 0;
  if (!digits.ends_with('%')) return Fault{"a share is needed", "such as \"5%\" or 0.05"};
  digits.remove_suffix(1);
  if (!read_whole(digits, percent)) return Fault{"a share is needed", "such as \"5%\" or 0.05"};
  const double share = percent / 100;
  if (!(share >= range.lowest && share <= range.highest)) return outside(*text, share_range(range));
  return share;
}

std::string share_range(Range<double> range) {
  return fmt::format("{}% to {}%", 100 * range.lowest, 100 * range.highest);
}

Read<spec::ForcedCollective> read_forced(const Value& value) {
  const Read<std::string> text = read_text(value);
  if (const Fault* fault = std::get_if<Fault>(&text)) return *fault;
  spec::ForcedCollective forced;
  std::string_view rest = trimmed(std::get<std::string>(text));
  if (rest == "automatic") return forced;
  std::vector<std::string_view> known = {"automatic"};
  for (const std::string_view name : all_names<spec::Algorithm>()) known.push_back(name);
  for (const std::string_view name : all_names<spec::Protocol>()) known.push_back(name);
  if (rest.empty()) return unknown_word(rest, known);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    const auto algorithm = find_named<spec::Algorithm>(word);
    const auto protocol = find_named<spec::Protocol>(word);
    if (!algorithm && !protocol) return unknown_word(word, known);
    if ((algorithm && forced.algorithm) || (protocol && forced.protocol))
      return Fault{"two of a kind", "one algorithm, one protocol or both, such as \"tree LL128\""};
    if (algorithm) forced.algorithm = algorithm;
    if (protocol) forced.protocol = protocol;
    rest = trimmed(rest.substr(end));
  }
  return forced;
}

std::string forced_text(const spec::ForcedCollective& forced) {
  std::string text;
  if (forced.algorithm) text = name_of(*forced.algorithm);
  if (forced.protocol) text += (text.empty() ? "" : " ") + std::string(name_of(*forced.protocol));
  return detail::quoted(text.empty() ? std::string("automatic") : text);
}

std::string forced_range() {
  return fmt::format("automatic, or of {}; {}", joined(all_names<spec::Algorithm>()),
                     joined(all_names<spec::Protocol>()));
}

}  // namespace detail

Field stragglers() {
  const auto read = [](const Value& value) {
    return read_entries<spec::Straggler>(value, kStragglers, read_straggler);
  };
  return detail::field(
      "list of slow parts", "GPU N = times, node N-M = times",
      [](auto& s) -> auto& { return s.cluster.stragglers; }, read,
      [](const std::vector<spec::Straggler>& list) {
        return entries_text(list, text_of_straggler);
      });
}

Field other_gpus() {
  const auto read = [](const Value& value) {
    return read_entries<spec::OtherGpus>(value, kOtherGpus, read_other);
  };
  return detail::field(
      "list of nodes", "node N-M = cluster preset, profile",
      [](auto& s) -> auto& { return s.cluster.other_gpus; }, read,
      [](const std::vector<spec::OtherGpus>& list) {
        return entries_text(list, [](const spec::OtherGpus& other) {
          return fmt::format("node {} = {}, {}", text_of_numbers(other.first, other.last),
                             other.cluster, other.profile);
        });
      });
}

}  // namespace scapesim::scenario
