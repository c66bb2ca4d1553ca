// SPDX-License-Identifier: Apache-2.0
// scape-step: steps of SCAPE on CUDA devices over NCCL, or on the CPU.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fmt/format.h>
#include <future>
#include <mutex>
#include <thread>

#include "kernels/step/backends.hpp"
#include "kernels/step/deferred.hpp"
#include "kernels/step/program.hpp"
#include "kernels/step/rendezvous.hpp"
#ifdef SCAPESIM_WITH_MPI
#include "kernels/step/mpi/meeting.hpp"
#endif

namespace {

using namespace scapesim;
using namespace scapesim::step;

constexpr int kNoDevice = 77;
constexpr int kFailed = 70;

/// Compares the states of some ranks, the first of them given; 0 or 1.
int check(const ProgramOptions& options, const std::vector<RankState>& states, int first) {
  const std::vector<RankState> expected = reference_states(options);
  int code = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const std::size_t rank = static_cast<std::size_t>(first) + i;
    const Difference d = difference(states[i], expected[rank]);
    const bool good = d.acceptable(options.ranks);
    fmt::print(
        "rank {} against the reference after {} steps: {} ({} of {} mask bits, {} weights, "
        "{} moments, {} residuals differ)\n",
        rank, options.steps, good ? "equal" : "NOT EQUAL", d.mask, d.elements, d.weights, d.moment,
        d.residual);
    if (!good) code = 1;
  }
  return code;
}

int run_on_cpu(const ProgramOptions& options) {
  DeferredWorld world(options.ranks);
  std::vector<std::unique_ptr<RankProgram>> programs;
  for (int rank = 0; rank < options.ranks; ++rank)
    programs.push_back(std::make_unique<RankProgram>(world.rank(rank), options, nullptr));
  for (int step = 0; step < options.steps; ++step) {
    for (const auto& program : programs) program->enqueue_step(step);
    world.run();
  }
  fmt::print("{} ranks on the CPU, one after the other: rank 0's times are no device's\n{}",
             options.ranks, programs[0]->report());
  if (!options.check) return 0;
  std::vector<RankState> states;
  for (const auto& program : programs) states.push_back(program->state());
  return check(options, states, 0);
}

/// Runs a rank on a device; the report is empty unless it is asked for.
struct RankResult {
  std::string report;
  RankState state;
};
RankResult run_rank(const ProgramOptions& options, int rank, int device, const Agree& agree) {
  const auto backend = cuda_backend(rank, options.ranks, device, agree);
  RankProgram program(*backend, options, [&](Backend& own) {
    if (options.stand_in_flops > 0) run_stand_in(own, {options.stand_in_flops});
  });
  backend->synchronise();
  for (int step = 0; step < options.steps; ++step) program.enqueue_step(step);
  backend->synchronise();
  return {program.report(), options.check ? program.state() : RankState{}};
}

/// Ranks of one process agree through memory: rank 0's texts, in their order.
class Shared {
 public:
  explicit Shared(int texts) : promises_(static_cast<std::size_t>(texts)) {
    for (auto& promise : promises_) futures_.push_back(promise.get_future().share());
  }
  Agree of_rank(int rank) {
    return [this, rank, next = std::size_t{0}](const std::string& text) mutable {
      const std::size_t number = next++;
      if (rank == 0) promises_.at(number).set_value(text);
      return futures_.at(number).get();
    };
  }
  /// Ends the waiting of the others when rank 0 fails.
  void fail(const std::exception_ptr& why) {
    for (auto& promise : promises_) {
      try {
        promise.set_exception(why);
      } catch (const std::future_error&) {
        continue;  // given already
      }
    }
  }

 private:
  std::vector<std::promise<std::string>> promises_;
  std::vector<std::shared_future<std::string>> futures_;
};

int run_threads(const ProgramOptions& options) {
  if (cuda_devices() < options.ranks) {
    fmt::print(stderr,
               "{} ranks on {} devices: NCCL wants a device for each; start a process per "
               "rank (--rank) for several nodes\n",
               options.ranks, cuda_devices());
    return 2;
  }
  Shared shared(2);
  const auto count = static_cast<std::size_t>(options.ranks);
  std::vector<RankResult> results(count);
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto i = static_cast<std::size_t>(rank);
      try {
        results[i] = run_rank(options, rank, rank, shared.of_rank(rank));
      } catch (...) {
        errors[i] = std::current_exception();
        if (rank == 0) shared.fail(errors[i]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  fmt::print("{} ranks, rank 0:\n{}", options.ranks, results[0].report);
  if (!options.check) return 0;
  std::vector<RankState> states;
  for (RankResult& result : results) states.push_back(std::move(result.state));
  return check(options, states, 0);
}

/// Where this process is among the others of its node.
int local_rank(int rank) {
  for (const char* name : {"SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"})
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return rank;
}

int run_process(const ProgramOptions& options, int rank, const Agree& agree) {
  const RankResult result = run_rank(options, rank, local_rank(rank) % cuda_devices(), agree);
  if (rank == 0) fmt::print("{} ranks, rank 0:\n{}", options.ranks, result.report);
  return options.check ? check(options, {result.state}, rank) : 0;
}

Agree by_files(const ProgramOptions& options, int rank) {
  return [&options, rank, next = 0](const std::string& text) mutable {
    std::filesystem::path file = options.rendezvous;
    file += "." + std::to_string(next++);
    return agreed_text({file, rank, options.ranks, options.timeout}, text);
  };
}

int run_on_cuda(ProgramOptions options) {
  const std::string missing = cuda_missing();
  if (!missing.empty()) {
    fmt::print(stderr, "{}\n", missing);
    return kNoDevice;
  }
#ifdef SCAPESIM_WITH_MPI
  if (options.rendezvous.empty() && started_by_mpi()) {
    MpiMeeting meeting;
    options.ranks = meeting.ranks();
    return run_process(options, meeting.rank(),
                       [&](const std::string& text) { return meeting.agreed_text(text); });
  }
#endif
  if (!options.rank) return run_threads(options);
  if (options.rendezvous.empty() && options.ranks > 1) {
    fmt::print(stderr, "--rendezvous: processes without MPI need a file to meet by\n");
    return 2;
  }
  return run_process(options, *options.rank, by_files(options, *options.rank));
}

}  // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  if (const auto* ended = std::get_if<Ended>(&parsed)) {
    fmt::print(ended->code == 0 ? stdout : stderr, "{}", ended->text);
    return ended->code;
  }
  const auto& options = std::get<ProgramOptions>(parsed);
  try {
    const int code = options.device == Device::cpu ? run_on_cpu(options) : run_on_cuda(options);
    return std::fflush(stdout) == 0 ? code : kFailed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kFailed;
  }
}
