// SPDX-License-Identifier: Apache-2.0
// Training logs of torchtitan. They print tokens per second and GPU, not step times: these follow
// where the log also names the global batch, the sequence length and the device mesh.
#include <algorithm>

#include "calib/import.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

struct Reader {
  std::string file;
  Observations out{};
  std::optional<int> gpus{};
  std::optional<int> global_batch{};
  std::optional<int> sequence_length{};
};

/// "6,789" -> 6789; "35.2%" is no such number.
std::optional<double> with_commas(std::string_view word) {
  std::string plain(word);
  std::erase(plain, ',');
  return positive_of(plain);
}

bool looks_like_step(std::string_view line) {
  const auto has = [&](std::string_view label) { return line.find(label) != line.npos; };
  return has("step:") && has("loss:") && (has("tps:") || has("wps:")) && !has("validate step:");
}

bool read_step(Reader& in, const TextLine& line) {
  const std::string_view label = line.text.find("tps:") != line.text.npos ? "tps:" : "wps:";
  const auto iteration = count_of(word_after(line.text, "step:").value_or(""));
  const auto rate = with_commas(word_after(line.text, label).value_or(""));
  // Utilisation ends the line; without it the line is cut off.
  if (!iteration || !rate || !line.text.ends_with('%')) return false;
  StepSample step{.gpus = in.gpus,
                  .iteration = *iteration,
                  .token_rate_per_gpu = TokensPerSecond(*rate),
                  .place = {in.file, line.number, 0}};
  if (in.global_batch) step.sequences = *in.global_batch;
  if (in.global_batch && in.sequence_length)
    step.tokens = Tokens(static_cast<double>(*in.global_batch) * *in.sequence_length);
  if (step.tokens && in.gpus) step.step_time = *step.tokens / (*step.token_rate_per_gpu * *in.gpus);
  if (const auto tflops = with_commas(word_after(line.text, "tflops:").value_or("")))
    step.flop_rate_per_gpu = FlopsPerSecond(*tflops * 1e12);
  in.out.steps.push_back(std::move(step));
  return true;
}

/// Product of the sizes in "... mesh with ['pp', 'dp_shard'], [2, 8]" or in "... mesh with
/// parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=4": experts share the others.
std::optional<int> mesh_size(std::string_view line) {
  double product = 1;
  const auto multiply = [&](std::string_view word) { product *= count_of(word).value_or(0); };
  if (const std::size_t list = line.rfind('['); list != line.npos && line.ends_with(']')) {
    std::string sizes(line.substr(list + 1, line.size() - list - 2));
    std::ranges::replace(sizes, ',', ' ');
    for (const std::string_view word : words_of(sizes)) multiply(word);
  } else {
    for (const std::string_view label : {" pp=", " dp_replicate=", " dp_shard=", " cp=", " tp="})
      multiply(word_after(line, label).value_or("1"));
  }
  constexpr double kMost = 1e7;
  return product >= 1 && product <= kMost ? std::optional(static_cast<int>(product)) : std::nullopt;
}

bool read_setting(Reader& in, std::string_view line) {
  if (line.find("Building ") != line.npos && line.find("device mesh with ") != line.npos) {
    in.gpus = mesh_size(line);
    return true;
  }
  if (line.find("Trainer is initialized with") == line.npos) return false;
  const auto setting = [&](std::string_view label) {
    return count_of(word_after(line, label).value_or(""));
  };
  in.global_batch = setting("global batch size ");
  in.sequence_length = setting("sequence length ");
  return true;
}

void read_line(Reader& in, const TextLine& line) {
  keep_environment(line.text, in.out);
  if (read_setting(in, line.text)) return;
  const bool like_step = looks_like_step(line.text);
  if (like_step && read_step(in, line)) return;
  constexpr std::string_view kGpu = "CUDA capacity: ";
  if (const std::size_t gpu = line.text.find(kGpu); gpu != line.text.npos) {
    const std::string_view name = line.text.substr(gpu + kGpu.size());
    return add_gpu_name(name.substr(0, name.find(" with ")), in.out.machine);
  }
  add_unparsed(line.number, line.text, like_step ? Looks::like_data : Looks::like_something_else,
               in.out);
}

}  // namespace

bool recognises_torchtitan(std::string_view text) {
  if (text.starts_with('{')) return false;
  for (std::size_t at = text.find("step:"); at != text.npos; at = text.find("step:", at + 1))
    if (looks_like_step(text.substr(at, text.find('\n', at) - at))) return true;
  return false;
}

Observations read_torchtitan(std::string_view text, const std::string& file) {
  const std::string plain = without_colours(text);
  Reader in{.file = file};
  for (const TextLine& line : lines_of(plain)) read_line(in, line);
  in.out.machine.gpus = in.gpus;
  if (!in.gpus || !in.global_batch || !in.sequence_length)
    warn(in.out, {.file = file}, "step times are unknown: only token rates are used",
         "keep the lines \"Building ... device mesh\" and \"Trainer is initialized with ...\"");
  require_samples(in.out, file, "step", "needed are lines with step:, loss:, tps: and mfu:");
  return std::move(in.out);
}

}  // namespace scapesim::calib
