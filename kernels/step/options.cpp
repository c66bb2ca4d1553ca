// SPDX-License-Identifier: Apache-2.0
#include "kernels/step/options.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <sstream>

namespace scapesim::step {

namespace {

/// An option whose words are an enumeration's.
template <class E>
void add_choice(CLI::App& app, const std::string& name, E& value, const std::string& help,
                std::map<std::string, E> words) {
  app.add_option(name, value, help)->transform(CLI::CheckedTransformer(std::move(words)));
}

template <class E>
std::map<std::string, E> words_of() {
  std::map<std::string, E> words;
  for (const Named<E>& row : names<E>()) words.emplace(row.name, row.value);
  return words;
}

void add_step_options(CLI::App& app, StepOptions& step) {
  using reference::Owners;
  using reference::SecondPayload;
  using reference::Sharding;
  app.add_option("--density", step.density, "share of elements sent")->check(CLI::Range(1e-6, 1.0));
  app.add_option("--warmup", step.density_warmup, "steps of a fall of the density from 1")
      ->check(CLI::Range(0, 100000));
  app.add_option("--mask-delay", step.mask_delay, "steps between making and using a mask")
      ->check(CLI::Range(0, 1));
  add_choice(app, "--mask-path", step.mask_path, "communicator of the mask", words_of<MaskPath>());
  add_choice(app, "--owners", step.owners, "who makes whose mask",
             {{"even", Owners::even}, {"tensor", Owners::tensor}});
  add_choice(app, "--sharding", step.sharding, "of the optimizer",
             {{"none", Sharding::none}, {"distributed", Sharding::distributed}});
  add_choice(app, "--second-payload", step.second_payload, "with sharding distributed",
             {{"weights", SecondPayload::weights}, {"none", SecondPayload::none}});
  add_choice(app, "--residual", step.residual, "where the residual lives", words_of<Placement>());
  add_choice(app, "--replica", step.replica, "where the fp32 weights live", words_of<Placement>());
  app.add_option("--chunk", step.chunk, "elements of a staging buffer")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 32U));
  app.add_option("--clip", step.adam.clip, "largest gradient norm")->check(CLI::PositiveNumber);
}

/// The options of a run; filled by parsing.
void add_run_options(CLI::App& app, ProgramOptions& options, long& timeout_s) {
  app.add_option("--ranks", options.ranks, "data-parallel ranks")->check(CLI::Range(1, 65536));
  app.add_option("--rank", options.rank,
                 "this process is one rank; without it all ranks are threads of this process, rank "
                 "i on device i")
      ->check(CLI::Range(0, 65535));
  app.add_option("--steps", options.steps, "optimizer steps")->check(CLI::Range(1, 1000000));
  app.add_option("--elements", options.elements, "parameters")
      ->check(CLI::Range(std::size_t{64}, std::size_t{1} << 40U));
  app.add_option("--learning-rate", options.learning_rate)->check(CLI::PositiveNumber);
  app.add_option("--stand-in", options.stand_in_flops,
                 "FLOPs of matrix products before each step, in place of a backward pass")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--check", options.check, "compare with the CPU reference after the last step");
  add_choice(app, "--device", options.device, "what the step runs on", words_of<Device>());
  app.add_option("--rendezvous", options.rendezvous,
                 "file in a folder that all ranks see, by which processes without MPI meet");
  app.add_option("--timeout", timeout_s, "seconds to wait for the other ranks")
      ->check(CLI::Range(1L, 86400L));
}

std::string what_is_wrong(const ProgramOptions& options) {
  if (options.rank && *options.rank >= options.ranks)
    return "--rank: ranks count from 0 to --ranks - 1";
  if (options.rank && options.device == Device::cpu)
    return "--rank: on the CPU all ranks are in one process";
  if (options.step.sharding == reference::Sharding::distributed &&
      options.step.owners != reference::Owners::even)
    return "--owners: with sharding distributed an owner is the optimizer's shard (even)";
  if (options.device == Device::cpu && options.stand_in_flops > 0)
    return "--stand-in: on a CUDA device only";
  return {};
}

}  // namespace

std::variant<ProgramOptions, Ended> parse_options(int argc, const char* const* argv) {
  ProgramOptions options;
  long timeout_s = 120;
  CLI::App app(
      "Runs steps of SCAPE on CUDA devices over NCCL, or on the CPU, and prints where the time "
      "goes and what is sent. Exit codes: 0 done, 1 not the reference's result, 2 bad options, 70 "
      "the device or a collective failed, 77 no CUDA device.",
      "scape-step");
  add_run_options(app, options, timeout_s);
  add_step_options(app, options.step);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const int code = app.exit(error, text, text);
    return Ended{text.str(), code == 0 ? 0 : 2};
  }
  options.timeout = std::chrono::seconds(timeout_s);
  const std::string wrong = what_is_wrong(options);
  if (!wrong.empty()) return Ended{wrong + "\n", 2};
  return options;
}

}  // namespace scapesim::step
