# SPDX-License-Identifier: Apache-2.0
# What the simulator counts against what the reference sends: both layers in one program.
target_link_libraries(oracle_strategy PRIVATE scapesim_kernels)
