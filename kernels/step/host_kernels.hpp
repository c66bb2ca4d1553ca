// SPDX-License-Identifier: Apache-2.0
// What the kernels of a step do, as plain loops over host memory with the reference's arithmetic.
#pragma once

#include "kernels/step/backend.hpp"

namespace scapesim::step {

void on_host(const Accumulate& arguments);
void on_host(const Gather& arguments);
void on_host(const Select& arguments);
void on_host(const kernels::Stitch& arguments);
void on_host(const kernels::ScanTiles& arguments);
void on_host(const SelectedNorm& arguments);
void on_host(const ScatterAdamS& arguments);
void on_host(const WriteBack& arguments);

}  // namespace scapesim::step
