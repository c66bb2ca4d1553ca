// SPDX-License-Identifier: Apache-2.0
// In place of the plain loops of kernels/step/host_kernels.cpp: the CUDA kernels' own source, run
// by the shim.
#include "kernels/step/host_kernels.hpp"

namespace scapesim::step {

void on_host(const Accumulate& arguments) { kernels::accumulate(arguments, nullptr); }
void on_host(const Gather& arguments) { kernels::gather(arguments, nullptr); }
void on_host(const Select& arguments) {
  kernels::select_threshold(arguments, nullptr);
  kernels::select_mask(arguments, nullptr);
}
void on_host(const kernels::Stitch& arguments) { kernels::stitch_masks(arguments, nullptr); }
void on_host(const kernels::ScanTiles& arguments) { kernels::scan_tiles(arguments, nullptr); }
void on_host(const SelectedNorm& arguments) { kernels::selected_norm(arguments, nullptr); }
void on_host(const ScatterAdamS& arguments) { kernels::scatter_adams(arguments, nullptr); }
void on_host(const WriteBack& arguments) { kernels::write_back(arguments, nullptr); }

}  // namespace scapesim::step
