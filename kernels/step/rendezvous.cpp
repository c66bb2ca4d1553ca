// SPDX-License-Identifier: Apache-2.0
// Rank i writes its number to FILE.i; rank 0 answers with all numbers that stand there and the
// text; a rank that finds its number takes the text and removes FILE.i; rank 0 ends when all are
// gone. Files appear whole: each is written under another name and renamed.
#include "kernels/step/rendezvous.hpp"

#include <fmt/format.h>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/base/file.hpp"

namespace scapesim::step {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{20};

std::filesystem::path file_of_rank(const Rendezvous& rendezvous, int rank) {
  std::filesystem::path file = rendezvous.file;
  file += "." + std::to_string(rank);
  return file;
}

/// Empty when it is not there.
std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::string drawn_number() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

/// Numbers of the ranks that are there, by rank; empty for the others.
std::vector<std::string> present(const Rendezvous& rendezvous) {
  std::vector<std::string> numbers;
  for (int rank = 1; rank < rendezvous.ranks; ++rank)
    numbers.push_back(content_of(file_of_rank(rendezvous, rank)));
  return numbers;
}

std::string missing_ranks(const std::vector<bool>& seen) {
  std::string list;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) list += fmt::format("{}{}", list.empty() ? "" : ", ", i + 1);
  return list;
}

void serve(const Rendezvous& rendezvous, const std::string& text) {
  const auto end = Clock::now() + rendezvous.timeout;
  const auto ranks = static_cast<std::size_t>(rendezvous.ranks) - 1;
  std::vector<std::string> answered(ranks);
  std::vector<bool> seen(ranks, false);
  for (;;) {
    const std::vector<std::string> numbers = present(rendezvous);
    bool all_gone = true;
    for (std::size_t i = 0; i < ranks; ++i) {
      if (!numbers[i].empty()) seen[i] = true;
      all_gone = all_gone && seen[i] && numbers[i].empty();
    }
    if (all_gone) break;
    if (numbers != answered) {
      std::string answer;
      for (const std::string& number : numbers) answer += number + "\n";
      write_file(rendezvous.file, answer + "text\n" + text);
      answered = numbers;
    }
    if (Clock::now() > end) {
      std::filesystem::remove(rendezvous.file);
      const std::string missing = missing_ranks(seen);
      throw std::runtime_error(fmt::format(
          "{}: {} within {} ms", rendezvous.file.string(),
          missing.empty() ? "a rank did not take the answer" : "rank " + missing + " did not come",
          rendezvous.timeout.count()));
    }
    std::this_thread::sleep_for(kPause);
  }
  std::filesystem::remove(rendezvous.file);
}

/// The text of an answer that holds the number; nothing else counts.
bool take(const std::string& answer, const std::string& number, std::string& text) {
  const std::size_t begin = answer.find("text\n");
  if (begin == answer.npos || answer.substr(0, begin).find(number + "\n") == answer.npos)
    return false;
  text = answer.substr(begin + 5);
  return true;
}

std::string ask(const Rendezvous& rendezvous) {
  const auto end = Clock::now() + rendezvous.timeout;
  const std::filesystem::path own = file_of_rank(rendezvous, rendezvous.rank);
  const std::string number = drawn_number();
  write_file(own, number);
  std::string text;
  while (!take(content_of(rendezvous.file), number, text)) {
    if (Clock::now() > end) {
      std::filesystem::remove(own);
      throw std::runtime_error(fmt::format("{}: rank 0 did not answer rank {} within {} ms",
                                           rendezvous.file.string(), rendezvous.rank,
                                           rendezvous.timeout.count()));
    }
    std::this_thread::sleep_for(kPause);
  }
  std::filesystem::remove(own);
  return text;
}

}  // namespace

std::string agreed_text(const Rendezvous& rendezvous, const std::string& text_of_rank_0) {
  SCAPESIM_CHECK(rendezvous.rank >= 0 && rendezvous.rank < rendezvous.ranks, "rank {} of {}",
                 rendezvous.rank, rendezvous.ranks);
  if (rendezvous.ranks == 1) return text_of_rank_0;
  if (rendezvous.rank != 0) return ask(rendezvous);
  serve(rendezvous, text_of_rank_0);
  return text_of_rank_0;
}

}  // namespace scapesim::step
