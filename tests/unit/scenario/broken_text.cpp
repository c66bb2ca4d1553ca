// SPDX-License-Identifier: Apache-2.0
// Whatever the bytes, loading gives scenarios or InputError: no crash, no other exception.
#include <catch2/catch.hpp>
#include <random>

#include "support.hpp"

namespace scapesim::scenario {
namespace {

// True when accepted; any exception but InputError ends the test.
bool accepts(const Scratch& scratch, const std::string& text, const Set& set = {}) {
  return problems_of([&] { load_scenarios(scratch.file("broken.toml", text), set); }).empty();
}

TEST_CASE("a scenario cut off at any byte is read or refused") {
  const Scratch scratch;
  const std::string whole = read_file("scenarios/vista-llama-1.8b.toml", "test");
  int accepted = 0;
  for (std::size_t length = 0; length <= whole.size(); ++length)
    accepted += accepts(scratch, whole.substr(0, length)) ? 1 : 0;
  CHECK(accepted > 0);
  CHECK(accepted < static_cast<int>(whole.size()) / 2);
}

TEST_CASE("a scenario with any bytes changed is read or refused") {
  const Scratch scratch;
  const std::string whole = read_file("scenarios/vista-llama-1.8b.toml", "test");
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
    }
    refused += accepts(scratch, text) ? 0 : 1;
  }
  CHECK(refused > 0);
}

TEST_CASE("any text is a --set or refused as one") {
  const Scratch scratch;
  static constexpr std::string_view kAlphabet = "=.\"'[]{}#,\n\t \\\xff-+_019eEinfatrue";
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::string text = random() % 2 == 0 ? "strategy.density=" : "";
    for (std::size_t n = random() % 12; n > 0; --n) text += kAlphabet[random() % kAlphabet.size()];
    INFO(text);
    CHECK_NOTHROW(accepts(scratch, kSound, {text}));
  }
}

TEST_CASE("a deeply nested value is refused, not a stack overflow") {
  const Scratch scratch;
  const std::string deep(100'000, '[');
  CHECK_FALSE(accepts(scratch, "name = " + deep));
  CHECK_FALSE(accepts(scratch, kSound, {"strategy.offload=" + deep}));
}

}  // namespace
}  // namespace scapesim::scenario
