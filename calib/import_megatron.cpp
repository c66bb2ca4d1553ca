// SPDX-License-Identifier: Apache-2.0
// Training logs of Megatron-LM and Megatron-DeepSpeed: one step per iteration line, the timer block
// that follows it (--timing-log-level), and what the list of arguments says.
#include <algorithm>
#include <fmt/format.h>

#include "calib/import.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

constexpr std::string_view kMilliseconds = "elapsed time per iteration (ms):";
constexpr std::string_view kSeconds = "elapsed time per iteration (s):";

/// Which kind of timer block the next lines belong to.
enum class Block { none, slowest, range, ranks };

struct Reader {
  std::string file;
  Observations out{};
  std::optional<int> gpus{};
  std::optional<int> sequence_length{};
  Block block = Block::none;
  std::string timer{};  ///< whose ranks are listed
  int startup_timers = 0;
};

std::string_view trimmed(std::string_view text, std::string_view cut) {
  const std::size_t first = text.find_first_not_of(cut);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(cut) - first + 1);
}

bool read_step(Reader& in, const TextLine& line) {
  const bool in_ms = line.text.find(kMilliseconds) != line.text.npos;
  if (!in_ms && line.text.find(kSeconds) == line.text.npos) return false;
  const auto time = positive_of(field_of(line.text, in_ms ? kMilliseconds : kSeconds).value_or(""));
  const std::string_view counter = word_after(line.text, "iteration ").value_or("");
  const auto iteration = count_of(counter.substr(0, counter.find('/')));
  if (!time || !iteration) {
    add_unparsed(line.number, line.text, Looks::like_data, in.out);
    return true;
  }
  const auto number = [&](std::string_view label) {
    return positive_of(field_of(line.text, label).value_or(""));
  };
  StepSample step{.gpus = in.gpus,
                  .iteration = *iteration,
                  .step_time = Seconds(*time) * (in_ms ? 1e-3 : 1.0),
                  .sequences = number("global batch size:"),
                  .place = {in.file, line.number, 0}};
  if (step.sequences && in.sequence_length)
    step.tokens = Tokens(*step.sequences * *in.sequence_length);
  auto tflops = number("throughput per GPU (TFLOP/s/GPU):");
  if (!tflops) tflops = number("TFLOPs:");
  if (tflops) step.flop_rate_per_gpu = FlopsPerSecond(*tflops * 1e12);
  in.out.steps.push_back(std::move(step));
  return true;
}

/// Keeps the slowest rank's time; timers before the first step are of the start.
void set_timer(Reader& in, std::string_view name, double milliseconds) {
  if (in.out.steps.empty()) {
    ++in.startup_timers;
    return;
  }
  Seconds& slowest = in.out.steps.back().timers[std::string(name)];
  slowest = std::max(slowest, Seconds(milliseconds * 1e-3));
}

/// "name ....: (1.0, 2.0)", "name ....: 2.0", "name:" or "rank  0: 2.0", as the block has it.
bool read_timer(Reader& in, std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (in.block == Block::none || colon == line.npos) return false;
  const std::string_view name = trimmed(line.substr(0, colon), " \t.");
  std::string_view value = trimmed(line.substr(colon + 1), " \t");
  if (in.block == Block::ranks) {
    if (value.empty()) {
      in.timer = name;
      return true;
    }
    const auto time = number_of(value);
    if (!name.starts_with("rank") || !time || in.timer.empty()) return false;
    set_timer(in, in.timer, *time);
    return true;
  }
  if (in.block == Block::range) {
    const std::size_t comma = value.find(", ");
    if (!value.starts_with('(') || !value.ends_with(')') || comma == value.npos) return false;
    value = value.substr(comma + 2, value.size() - comma - 3);
  }
  const auto time = number_of(value);
  if (!time || name.empty()) return false;
  set_timer(in, name, *time);
  return true;
}

bool begins_block(Reader& in, std::string_view line) {
  const auto has = [&](std::string_view part) { return line.find(part) != line.npos; };
  if (has("(min, max) time across ranks (ms):"))
    in.block = Block::range;
  else if (has("max time across ranks (ms):"))
    in.block = Block::slowest;
  else if (has("times across ranks (ms):"))
    in.block = Block::ranks;
  else
    return false;
  in.timer.clear();
  return true;
}

/// "time (ms) | forward: 1.0 | backward: 2.0", before Megatron-LM's core 0.2.
bool read_old_timers(Reader& in, std::string_view line) {
  constexpr std::string_view kBegin = "time (ms) |";
  const std::size_t begin = line.find(kBegin);
  if (begin == line.npos) return false;
  std::string_view rest = line.substr(begin + kBegin.size());
  while (!rest.empty()) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    const std::string_view field = rest.substr(0, bar);
    const std::size_t colon = field.find(':');
    if (colon != field.npos)
      if (const auto time = number_of(trimmed(field.substr(colon + 1), " ")))
        set_timer(in, trimmed(field.substr(0, colon), " "), *time);
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return true;
}

/// "world_size ......... 64" of the list of arguments, "using world size: 64, ..."; other arguments
/// are known lines too.
bool read_argument(Reader& in, std::string_view line) {
  if (const auto world = count_of(word_after(line, "using world size:").value_or(""))) {
    in.gpus = world;
    return true;
  }
  const auto words = words_of(line);
  const bool dotted = words.size() >= 2 && words[1].size() >= 2 &&
                      words[1].find_first_not_of('.') == std::string_view::npos;
  if (!dotted) return false;
  if (words.size() == 3 && words[0] == "world_size") in.gpus = count_of(words[2]);
  if (words.size() == 3 && words[0] == "seq_length") in.sequence_length = count_of(words[2]);
  return true;
}

void read_line(Reader& in, const TextLine& line) {
  keep_environment(line.text, in.out);
  if (read_timer(in, line.text)) return;
  in.block = Block::none;
  if (read_step(in, line) || begins_block(in, line.text) || read_old_timers(in, line.text) ||
      read_argument(in, line.text))
    return;
  add_unparsed(line.number, line.text, Looks::like_something_else, in.out);
}

}  // namespace

bool recognises_megatron(std::string_view text) {
  return !text.starts_with('{') &&
         (text.find(kMilliseconds) != text.npos || text.find(kSeconds) != text.npos);
}

Observations read_megatron(std::string_view text, const std::string& file) {
  const std::string plain = without_colours(text);
  Reader in{.file = file};
  for (const TextLine& line : lines_of(plain)) read_line(in, line);
  in.out.machine.gpus = in.gpus;
  if (in.startup_timers > 0)
    warn(in.out, {.file = file},
         fmt::format("{} timers before the first step are not used", in.startup_timers),
         "they time the start of the job");
  if (!in.gpus)
    warn(in.out, {.file = file}, "the number of GPUs is not in the log",
         "keep the list of arguments (world_size) or the line \"using world size\"");
  require_samples(in.out, file, "step",
                  "needed are lines with \"elapsed time per iteration (ms): T |\"");
  return std::move(in.out);
}

}  // namespace scapesim::calib
