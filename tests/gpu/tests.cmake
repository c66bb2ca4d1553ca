# SPDX-License-Identifier: Apache-2.0
# The kernels on the SIMT shim with planted faults, and on a device where there is one. The shim's
# other tests are in tests/unit/simt.
set_tests_properties(unit_simt PROPERTIES TIMEOUT 240)
set_tests_properties(compile_spills PROPERTIES SKIP_RETURN_CODE 77)

if(SCAPESIM_SANITIZE)
  # AddressSanitizer takes the place of the shim's own record, which finds races.
  set_tests_properties(gpu_faults PROPERTIES DISABLED ON)
else()
  add_executable(simt_check ${CMAKE_CURRENT_LIST_DIR}/simt_check.cpp)
  target_link_libraries(simt_check PRIVATE scapesim_simt)
  set(link "$<TARGET_OBJECTS:simt_check>")
  foreach(library scapesim_check scapesim_simt_kernels scapesim_kernels scapesim_simt_machine
          scapesim_base fmt::fmt)
    string(APPEND link "|$<TARGET_FILE:${library}>")
  endforeach()
  set_property(TEST gpu_faults APPEND PROPERTY ENVIRONMENT "SIMT_LINK=${link}")
  set_tests_properties(gpu_faults PROPERTIES TIMEOUT 240)
endif()

# The same program on the shim: its table is right where the kernels are.
add_executable(simt_device_check ${PROJECT_SOURCE_DIR}/kernels/device_check.cpp)
target_link_libraries(simt_device_check PRIVATE scapesim_simt)
scapesim_test(gpu_device_check_on_shim gpu $<TARGET_FILE:simt_device_check> 1 33)
set_tests_properties(gpu_device_check_on_shim PROPERTIES PASS_REGULAR_EXPRESSION
                     "SIMT shim.*accumulate +36 .*ok.*SCAPE steps +36 .*ok" FAIL_REGULAR_EXPRESSION WRONG)

if(SCAPESIM_WITH_CUDA)
  scapesim_test(gpu_device_check gpu $<TARGET_FILE:device_check>)
  set_tests_properties(gpu_device_check PROPERTIES SKIP_RETURN_CODE 77)
endif()

scapesim_test(gpu_scape_step gpu $<TARGET_FILE:scape-step> --ranks 1 --steps 5 --elements 1000003
              --residual staged --chunk 100000 --check)
set_tests_properties(gpu_scape_step PROPERTIES SKIP_RETURN_CODE 77)
