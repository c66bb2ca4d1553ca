# SPDX-License-Identifier: Apache-2.0
# The CUDA kernels, where a CUDA compiler is: the library scapesim_cuda, for sm_90 (GH200, H100 and
# H200) unless CMAKE_CUDA_ARCHITECTURES says otherwise. SCAPESIM_WITH_CUDA tells whether.
set(SCAPESIM_CUDA AUTO CACHE STRING "CUDA kernels: AUTO (where nvcc is), ON or OFF")
set_property(CACHE SCAPESIM_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT SCAPESIM_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "SCAPESIM_CUDA is ${SCAPESIM_CUDA}: AUTO, ON or OFF")
endif()

set(SCAPESIM_WITH_CUDA OFF)
if(NOT SCAPESIM_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(SCAPESIM_WITH_CUDA ON)
  elseif(SCAPESIM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SCAPESIM_CUDA is ON, but there is no CUDA compiler: put nvcc on PATH or name "
                        "it by CUDACXX, or set SCAPESIM_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA kernels: ${SCAPESIM_WITH_CUDA} (SCAPESIM_CUDA=${SCAPESIM_CUDA})")

if(NOT SCAPESIM_WITH_CUDA)
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90-real)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# A function, for its variables: CMake 3.25 knows no C++20 for nvcc 13, also not by
# CMAKE_CXX_STANDARD. The option is given by hand instead.
function(scapesim_cuda_library name)
  unset(CMAKE_CXX_STANDARD)
  unset(CMAKE_CXX_STANDARD_REQUIRED)
  unset(CMAKE_CXX_EXTENSIONS)
  add_library(${name} STATIC ${ARGN})
  # --fmad=false: the reference's arithmetic, bit for bit.
  target_compile_options(${name} PRIVATE -std=c++20 --fmad=false -Werror=all-warnings
                         -Xcompiler=-Wall,-Wextra)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC CUDA::cudart_static)
endfunction()

file(GLOB cuda_sources CONFIGURE_DEPENDS kernels/cuda/*.cu)
scapesim_cuda_library(scapesim_cuda ${cuda_sources})

add_executable(device_check kernels/device_check.cpp)
target_link_libraries(device_check PRIVATE scapesim_check scapesim_cuda)
set_target_properties(device_check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
