// SPDX-License-Identifier: Apache-2.0
// scapesim-shapes FILE PRESET...: the matrix products of model presets, one micro-batch of 4096
// tokens on one GPU, as the list that scapesim-bench reads.
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"
#include "sim/workload/workload.hpp"

namespace {

using namespace scapesim;

/// Shapes that were written already.
using Seen = std::set<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>>;

void add_shapes(std::string& list, const std::string& preset,
                const std::vector<workload::Operation>& operations, const std::string& other_pass,
                Seen& seen) {
  for (const workload::Operation& operation : operations) {
    const auto* gemm = std::get_if<workload::Gemm>(&operation.shape);
    if (gemm == nullptr || gemm->groups != 1) continue;
    const std::string pass = gemm->accumulate_fp32 ? "wgrad" : other_pass;
    if (seen.insert({pass, gemm->m, gemm->n, gemm->k}).second)
      list += fmt::format("{} {},{},{},{},{}\n", preset, operation.name, pass, gemm->m, gemm->n,
                          gemm->k);
  }
}

/// The model in a scenario that any model fits into: no step is simulated.
workload::Workload workload_of(const std::string& preset) {
  const std::vector<std::string> set = {"model.preset=" + preset, "training.sequence=1024",
                                        "training.micro_batch=4", "training.global_batch=256",
                                        "cluster.gpus=64"};
  const auto scenario =
      scenario::load_scenarios(data_folder() / "scenarios/vista-llama-500m.toml", set)[0];
  return workload::workload_of(scenario.model, scenario.training);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    Seen seen;
    std::string list = "name,pass,m,n,k\n";
    for (int i = 2; i < argc; ++i) {
      const std::string preset = argv[i];
      for (const workload::Layer& layer : workload_of(preset).layers) {
        add_shapes(list, preset, layer.forward, "forward", seen);
        add_shapes(list, preset, layer.backward, "dgrad", seen);
      }
    }
    write_file(argv[1], list);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
