// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/network_fields.hpp"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/file.hpp"
#include "topologies/network_graph.hpp"

namespace scapesim::scenario {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(trimmed(text.substr(0, end)));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
bool read_whole(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

/// A list of texts, each turned into a T by `parse`.
template <class T, class Parse>
detail::Read<std::vector<T>> read_list(const Value& value, const char* example, Parse parse) {
  constexpr std::size_t kMost = 10'000;
  const auto* words = std::get_if<std::vector<std::string>>(&value);
  if (words == nullptr) return Fault{"a list of texts is needed", example};
  if (words->size() > kMost) return Fault{fmt::format("over {} entries", kMost), ""};
  std::vector<T> list;
  for (const std::string& word : *words) {
    std::optional<T> item = parse(word);
    if (!item) return Fault{fmt::format("\"{}\" is not understood", word), example};
    list.push_back(std::move(*item));
  }
  return list;
}

template <class T, class Text>
std::string list_text(const std::vector<T>& list, Text text) {
  std::vector<std::string> words;
  for (const T& item : list) words.push_back(detail::quoted(text(item)));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

std::optional<spec::PcieBranch> parse_branch(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  spec::PcieBranch branch{.parent = std::string(trimmed(text.substr(0, colon))),
                          .children = split(text.substr(colon + 1), ',')};
  if (branch.parent.empty()) return std::nullopt;
  for (const std::string& child : branch.children)
    if (child.empty()) return std::nullopt;
  return branch;
}

std::optional<spec::Degraded> parse_cable(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view left = trimmed(text.substr(equals + 1));
  spec::Degraded cable;
  if (left == "failed")
    cable.share = 0;
  else if (!read_whole(left, cable.share) || !(cable.share > 0 && cable.share <= 1))
    return std::nullopt;
  const std::string_view ends = text.substr(0, equals);
  const std::size_t dash = ends.find(" - ");
  cable.from = trimmed(ends.substr(0, dash));
  if (dash != std::string_view::npos) cable.to = trimmed(ends.substr(dash + 3));
  if (cable.from.empty() || (dash != std::string_view::npos && cable.to.empty()))
    return std::nullopt;
  return cable;
}

std::string text_of_cable(const spec::Degraded& cable) {
  const std::string share = cable.share > 0 ? fmt::format("{}", cable.share) : "failed";
  return cable.to.empty() ? fmt::format("{} = {}", cable.from, share)
                          : fmt::format("{} - {} = {}", cable.from, cable.to, share);
}

}  // namespace

namespace detail {

Read<std::optional<Dollars>> read_dollars(const Value& value) {
  constexpr std::string_view kUnit = "USD";
  constexpr double kHighest = 1e9;
  const Read<std::string> text = read_quantity_text(value);
  if (const Fault* fault = std::get_if<Fault>(&text)) return *fault;
  std::string_view word = std::get<std::string>(text);
  if (word == "none") return std::optional<Dollars>();
  double price = 0;
  if (read_whole(word, price))
    return Fault{"unit missing", fmt::format("write \"{}{}\"", word, kUnit)};
  if (!word.ends_with(kUnit)) return Fault{"a price is needed", "such as \"2500USD\""};
  word.remove_suffix(kUnit.size());
  if (!read_whole(trimmed(word), price)) return Fault{"a price is needed", "such as \"2500USD\""};
  if (!(price >= 0 && price <= kHighest)) return outside(std::get<std::string>(text), kDollarRange);
  return std::optional(Dollars(price));
}

std::string dollars_text(const std::optional<Dollars>& price) {
  return detail::quoted(price ? exact(price->si(), "USD") : "none");
}

}  // namespace detail

Field nic_affinity() {
  constexpr int kMost = 1023;
  const std::string range = fmt::format("numbers of 0 to {}, or none", kMost);
  const auto read = [=](const Value& value) -> detail::Read<std::vector<int>> {
    constexpr const char* kExample = "such as \"0,0,1,1\"";
    const detail::Read<std::string> text = detail::read_text(value);
    if (const Fault* fault = std::get_if<Fault>(&text)) return Fault{fault->what, kExample};
    std::vector<int> nics;
    if (std::get<std::string>(text) == "none") return nics;
    for (const std::string& word : split(std::get<std::string>(text), ',')) {
      int nic = 0;
      if (!read_whole(std::string_view(word), nic))
        return Fault{fmt::format("\"{}\" is no number of an adapter", word), kExample};
      if (nic < 0 || nic > kMost) return detail::outside(word, range);
      nics.push_back(nic);
    }
    return nics;
  };
  const auto text = [](const std::vector<int>& nics) {
    return detail::quoted(nics.empty() ? "none" : fmt::format("{}", fmt::join(nics, ",")));
  };
  return detail::field(
      "adapters", range, [](auto& s) -> auto& { return s.cluster.nic_affinity; }, read, text);
}

Field pcie_tree() {
  const auto read = [](const Value& value) {
    return read_list<spec::PcieBranch>(
        value, "such as [\"socket 0: switch 0\", \"switch 0: GPU 0, GPU 1, NIC 0\"]", parse_branch);
  };
  const auto text = [](const std::vector<spec::PcieBranch>& branches) {
    return list_text(branches, [](const spec::PcieBranch& branch) {
      return fmt::format("{}: {}", branch.parent, fmt::join(branch.children, ", "));
    });
  };
  return detail::field(
      "list of branches", "parent: what hangs below it, ...",
      [](auto& s) -> auto& { return s.cluster.pcie_tree; }, read, text);
}

Field degraded_cables() {
  const auto read = [](const Value& value) {
    return read_list<spec::Degraded>(
        value,
        "such as [\"NIC 3 = 0.5\"], the share of its capacity that is left, or "
        "[\"leaf switch 0 - spine switch 1 = failed\"]",
        parse_cable);
  };
  const auto text = [](const std::vector<spec::Degraded>& cables) {
    return list_text(cables, text_of_cable);
  };
  return detail::field(
      "list of cables", "part = share, part - part = share or failed",
      [](auto& s) -> auto& { return s.cluster.fabric.degraded; }, read, text);
}

Field network_file() {
  const auto read = [](const Value& value) -> detail::Read<spec::NetworkGraph> {
    const detail::Read<std::string> text = detail::read_text(value);
    if (const Fault* fault = std::get_if<Fault>(&text)) return *fault;
    const std::string& file = std::get<std::string>(text);
    if (file == "none") return spec::NetworkGraph{};
    Problems problems;
    try {
      spec::NetworkGraph graph =
          topology::read_network(read_file(file, "cluster.graph"), file, problems);
      problems.raise();
      return graph;
    } catch (const InputError& failure) {
      std::string what = failure.what();  // a line per problem
      for (std::size_t end; (end = what.find('\n')) != std::string::npos;)
        what.replace(end, 1, "; ");
      return Fault{what, "a .graphml or .csv file"};
    }
  };
  const auto text = [](const spec::NetworkGraph& graph) {
    return detail::quoted(graph.file.empty() ? "none" : graph.file);
  };
  return detail::field(
      "file", "GraphML (.graphml) or CSV (from,to,bandwidth,count), or none",
      [](auto& s) -> auto& { return s.cluster.fabric.graph; }, read, text);
}

}  // namespace scapesim::scenario
