# SPDX-License-Identifier: Apache-2.0
# The kernels on a device, where there is one; on the SIMT shim see tests/unit/simt.
set_tests_properties(unit_simt PROPERTIES TIMEOUT 240)
if(SCAPESIM_WITH_CUDA)
  scapesim_test(gpu_device_check gpu $<TARGET_FILE:device_check>)
  set_tests_properties(gpu_device_check PROPERTIES SKIP_RETURN_CODE 77)
endif()
