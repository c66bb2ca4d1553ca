# SPDX-License-Identifier: Apache-2.0
# What runs the kernels: scape-step (steps of SCAPE over NCCL, or on the CPU) and scapesim-bench.
# Both build everywhere; without nvcc and cuBLASLt (for scape-step NCCL too) they say that there is
# no CUDA device.
scapesim_layer(step kernels/step scapesim_kernels CLI11::CLI11)

# NCCL: under NCCL_HOME, the CUDA toolkit, or where the system keeps libraries.
set(SCAPESIM_WITH_NCCL OFF)
if(SCAPESIM_WITH_CUDA)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS $ENV{NCCL_HOME}/include ${NCCL_HOME}/include
            ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS $ENV{NCCL_HOME}/lib ${NCCL_HOME}/lib
               ${CUDAToolkit_LIBRARY_DIR})
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY AND TARGET CUDA::cublasLt)
    set(SCAPESIM_WITH_NCCL ON)
  endif()
endif()
message(STATUS "NCCL: ${SCAPESIM_WITH_NCCL}")

add_executable(scape-step kernels/step/main.cpp)
target_link_libraries(scape-step PRIVATE scapesim_step)
set_target_properties(scape-step PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
set(SCAPESIM_WITH_DEVICE OFF)
if(SCAPESIM_WITH_CUDA AND TARGET CUDA::cublasLt)
  set(SCAPESIM_WITH_DEVICE ON)
  file(GLOB device_sources CONFIGURE_DEPENDS kernels/device/*.cpp)
  add_library(scapesim_device STATIC ${device_sources})
  target_link_libraries(scapesim_device PUBLIC scapesim_cuda scapesim_base CUDA::cudart_static
                        CUDA::cublasLt)
endif()
if(SCAPESIM_WITH_NCCL)
  target_sources(scape-step PRIVATE kernels/step/cuda/backend.cpp)
  target_include_directories(scape-step SYSTEM PRIVATE ${NCCL_INCLUDE_DIR})
  target_link_libraries(scape-step PRIVATE scapesim_device ${NCCL_LIBRARY})
else()
  target_sources(scape-step PRIVATE kernels/step/none/backend.cpp)
endif()

find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  target_sources(scape-step PRIVATE kernels/step/mpi/meeting.cpp)
  target_compile_definitions(scape-step PRIVATE SCAPESIM_WITH_MPI)
  target_link_libraries(scape-step PRIVATE MPI::MPI_CXX)
endif()
message(STATUS "MPI: ${MPI_CXX_FOUND}")

# The bench, and the shapes of matrix products that it measures, beside it.
scapesim_layer(bench kernels/bench scapesim_kernels CLI11::CLI11 nlohmann_json::nlohmann_json
               ${CMAKE_DL_LIBS})
add_executable(scapesim-bench kernels/bench/main.cpp)
target_link_libraries(scapesim-bench PRIVATE scapesim_bench)
set_target_properties(scapesim-bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
if(SCAPESIM_WITH_DEVICE)
  scapesim_cuda_library(scapesim_bench_passes kernels/bench/cuda/passes.cu)
  target_sources(scapesim-bench PRIVATE kernels/bench/cuda/copies.cpp kernels/bench/cuda/device.cpp
                 kernels/bench/cuda/kernels.cpp kernels/bench/cuda/products.cpp
                 kernels/bench/cuda/stopwatch.cpp)
  target_link_libraries(scapesim-bench PRIVATE scapesim_device scapesim_bench_passes)
  if(SCAPESIM_WITH_NCCL)
    target_sources(scapesim-bench PRIVATE kernels/bench/cuda/collectives.cpp)
    target_include_directories(scapesim-bench SYSTEM PRIVATE ${NCCL_INCLUDE_DIR})
    target_link_libraries(scapesim-bench PRIVATE ${NCCL_LIBRARY})
  else()
    target_sources(scapesim-bench PRIVATE kernels/bench/none/collectives.cpp)
  endif()
else()
  target_sources(scapesim-bench PRIVATE kernels/bench/none/device.cpp)
endif()

add_executable(scapesim-shapes calib/shapes/main.cpp)
target_link_libraries(scapesim-shapes PRIVATE scapesim_scenario)
set(shapes_list ${PROJECT_BINARY_DIR}/gemm_shapes.csv)
add_custom_command(
  OUTPUT ${shapes_list}
  COMMAND scapesim-shapes ${shapes_list} gpt-345m llama-500m llama-1.8b llama-7b llama-13b llama-70b
          gpt3-175b
  DEPENDS scapesim-shapes VERBATIM)
add_custom_target(gemm_shapes ALL DEPENDS ${shapes_list})
