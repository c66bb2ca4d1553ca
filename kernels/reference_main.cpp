// SPDX-License-Identifier: Apache-2.0
// scape-reference: trains two small tasks by dense AdamS and by SCAPE and prints, as CSV, losses
// and what the masks do: how much of a mask is in the next one, and how far global masks fill in.
#include <cmath>
#include <cstdio>
#include <fmt/format.h>

#include "kernels/reference/tasks.hpp"

namespace {

using namespace scapesim::reference;

constexpr int kSteps = 3000;

constexpr const char* kHead =
    "# SPDX-License-Identifier: Apache-2.0\n"
    "# Output of scape-reference: the CPU reference of SCAPE on two small synthetic tasks, means "
    "over "
    "all steps, norms\n"
    "# and biases left out. sent_share: what owners' masks select; kept_share: part of such a mask "
    "that "
    "is in the next\n"
    "# one too. rank_share: what one rank's mask over all elements selects; union_share: the OR of "
    "all "
    "ranks' such masks;\n"
    "# mask_overlap: the simulator's parameter that gives this union. Losses are at the end, on "
    "held-out data, with\n"
    "# owners' masks. Tasks this small are no large models.\n"
    "task,parameters,ranks,steps,density,sent_share,kept_share,rank_share,union_share,mask_overlap,"
    "dense_loss,scape_loss\n";

/// What a rank's own mask of all elements selects, norms and biases left out.
double rank_share(const Task& task, double density) {
  std::size_t selected = 0;
  std::size_t all = 0;
  for (const Tensor& tensor : task.tensors) {
    if (tensor.always_selected) continue;
    selected += top_count({0, tensor.numel, false}, density);
    all += tensor.numel;
  }
  return static_cast<double>(selected) / static_cast<double>(all);
}

// [M45] The overlap parameter that gives this fill-in: 0 for independent masks, 1 for equal ones.
double overlap_parameter(double union_share, double share, int ranks) {
  const double independent = 1 - std::pow(1 - share, ranks);
  return (independent - union_share) / (independent - share);
}

void print_row(const Task& task, int ranks, double density, double dense_loss) {
  ScapeOptions options;
  options.density = density;
  const Training own = train_scape(task, ranks, kSteps, options);
  options.mask_partition = MaskPartition::global;
  const Training global = train_scape(task, ranks, kSteps, options);
  const double share = rank_share(task, density);
  fmt::print("{},{},{},{},{},{:.4f},{:.3f},{:.4f},{:.4f},{:.2f},{:.3f},{:.3f}\n", task.name,
             task.initial.size(), ranks, kSteps, density, own.selected_share, own.mask_overlap,
             share, global.selected_share, overlap_parameter(global.selected_share, share, ranks),
             dense_loss, own.loss);
}

}  // namespace

int main() {
  fmt::print("{}", kHead);
  for (const Task& task : {least_squares(), classifier()})
    for (const int ranks : {4, 8, 16}) {
      const double dense_loss = train_dense(task, ranks, kSteps).loss;
      for (const double density : {0.1, 0.05, 0.01}) print_row(task, ranks, density, dense_loss);
    }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
