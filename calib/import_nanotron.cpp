// SPDX-License-Identifier: Apache-2.0
// Training logs of nanotron. Newer versions print three significant digits with K, M, G; what such
// a number cannot tell exactly (GPUs, batch) is left open.
#include <cmath>
#include <fmt/format.h>

#include "calib/import.hpp"
#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

constexpr std::string_view kTime = "elapsed_time_per_iteration_ms:";

struct Printed {
  double value = 0;
  double error = 0;  ///< half a unit in the last place
  bool shortened = false;
};

/// "1.02K" or "1.234567E+05"
std::optional<Printed> printed_in(std::string_view line, std::string_view label) {
  std::string_view word = field_of(line, label).value_or("");
  constexpr std::string_view kSuffixes = "KMGTPE";
  const std::size_t suffix = word.empty() ? word.npos : kSuffixes.find(word.back());
  double scale = 1;
  if (suffix != kSuffixes.npos) {
    word.remove_suffix(1);
    scale = std::pow(1000, static_cast<double>(suffix + 1));
  }
  const auto value = positive_of(word);
  if (!value) return std::nullopt;
  // The short form drops trailing zeros: its error is that of three digits.
  const double digits = std::pow(10, std::floor(std::log10(*value)) - 2) / 2;
  const double error = scale > 1 ? digits : half_unit(word);
  return Printed{*value * scale, error * scale, scale > 1};
}

/// total / per_gpu where the rounding of both leaves one whole number.
std::optional<int> gpus_of(const std::optional<Printed>& total,
                           const std::optional<Printed>& per_gpu) {
  if (!total || !per_gpu) return std::nullopt;
  const double ratio = total->value / per_gpu->value;
  const double error = ratio * (total->error / total->value + per_gpu->error / per_gpu->value);
  const double whole = std::round(ratio);
  if (error >= 0.5 || std::abs(ratio - whole) > error + 1e-6 * ratio || whole < 1)
    return std::nullopt;
  return static_cast<int>(whole);
}

bool read_step(const TextLine& line, const std::string& file, Observations& out) {
  const auto time = printed_in(line.text, kTime);
  const auto iteration = count_of(word_after(line.text, "iteration:").value_or(""));
  if (!time || !iteration) return false;
  const auto per_gpu = printed_in(line.text, "tokens_per_sec_per_gpu:");
  const auto batch = printed_in(line.text, "global_batch_size:");
  const auto tflops = printed_in(line.text, "model_tflops_per_gpu:");
  StepSample step{.gpus = gpus_of(printed_in(line.text, "tokens_per_sec:"), per_gpu),
                  .iteration = *iteration,
                  .step_time = Seconds(time->value * 1e-3),
                  .place = {file, line.number, 0}};
  if (batch && !batch->shortened) step.sequences = batch->value;
  if (per_gpu) step.token_rate_per_gpu = TokensPerSecond(per_gpu->value);
  if (tflops) step.flop_rate_per_gpu = FlopsPerSecond(tflops->value * 1e12);
  out.steps.push_back(std::move(step));
  return true;
}

}  // namespace

bool recognises_nanotron(std::string_view text) {
  return !text.starts_with('{') && text.find(kTime) != text.npos;
}

Observations read_nanotron(std::string_view text, const std::string& file) {
  const std::string plain = without_colours(text);
  Observations out;
  int shortened = 0;
  for (const TextLine& line : lines_of(plain)) {
    keep_environment(line.text, out);
    const bool looks_like_step = line.text.find(kTime) != line.text.npos;
    if (looks_like_step && read_step(line, file, out))
      shortened += printed_in(line.text, kTime)->shortened ? 1 : 0;
    else
      add_unparsed(line.number, line.text,
                   looks_like_step ? Looks::like_data : Looks::like_something_else, out);
  }
  if (shortened > 0)
    warn(out, {.file = file}, fmt::format("{} step times are printed with three digits", shortened),
         "each may be off by half a per cent");
  if (!out.steps.empty()) out.machine.gpus = out.steps.back().gpus;
  require_samples(out, file, "step",
                  "needed are lines with \"iteration: N / M | ... | "
                  "elapsed_time_per_iteration_ms: T |\"");
  return out;
}

}  // namespace scapesim::calib
