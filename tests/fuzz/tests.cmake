# SPDX-License-Identifier: Apache-2.0
# Fuzz targets are no tests: they are built on demand and run by hand or by a job of their own.
option(SCAPESIM_FUZZ "libFuzzer targets (clang only)" OFF)
if(SCAPESIM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SCAPESIM_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # The importers and what they use are compiled again, with instrumentation.
  file(GLOB fuzzed CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/calib/import*.cpp
       ${PROJECT_SOURCE_DIR}/sim/base/*.cpp ${PROJECT_SOURCE_DIR}/sim/result/*.cpp)
  add_executable(import_fuzz ${CMAKE_CURRENT_LIST_DIR}/import_fuzz.cpp ${fuzzed})
  target_include_directories(import_fuzz PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(import_fuzz PRIVATE SCAPESIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             SCAPESIM_VERSION="${PROJECT_VERSION}")
  # g++ is the compiler that warnings are held to; clang warns of more conversions.
  target_compile_options(import_fuzz PRIVATE -fsanitize=fuzzer,address,undefined -g
                         -Wno-error)
  target_link_options(import_fuzz PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(import_fuzz PRIVATE fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB
                        SQLite::SQLite3)

  file(GLOB fuzzed CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sim/scenario/*.cpp
       ${PROJECT_SOURCE_DIR}/topologies/*.cpp
       ${PROJECT_SOURCE_DIR}/sim/base/*.cpp ${PROJECT_SOURCE_DIR}/sim/spec/*.cpp)
  add_executable(arguments_fuzz ${CMAKE_CURRENT_LIST_DIR}/arguments_fuzz.cpp ${fuzzed})
  target_include_directories(arguments_fuzz PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(arguments_fuzz PRIVATE TOML_HEADER_ONLY=0 TOML_SHARED_LIB=1 SCAPESIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             SCAPESIM_VERSION="${PROJECT_VERSION}")
  target_compile_options(arguments_fuzz PRIVATE -fsanitize=fuzzer,address,undefined -g
                         -Wno-error)
  target_link_options(arguments_fuzz PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(arguments_fuzz PRIVATE fmt::fmt nlohmann_json::nlohmann_json
                        PkgConfig::TOMLPLUSPLUS)
endif()
