# SPDX-License-Identifier: Apache-2.0
# What the simulator counts against what the reference sends: both layers in one program.
target_link_libraries(oracle_strategy PRIVATE scapesim_kernels scapesim_step)

# What the bench writes against what calibrate reads.
target_link_libraries(oracle_bench PRIVATE scapesim_calib)
# A step with the kernels' own source, run by the shim.
target_link_libraries(oracle_step PRIVATE scapesim_simt)
