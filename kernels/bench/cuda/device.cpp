// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <unistd.h>

#include "kernels/bench/cuda/families.hpp"
#include "kernels/bench/cuda/passes.hpp"
#include "kernels/bench/nvml.hpp"

namespace scapesim::bench {

using device::check;

namespace {

std::string bus_id(int device) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device),
        "cudaDeviceGetPCIBusId");
  return text.data();
}

int attribute(cudaDeviceAttr name) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace

std::string device_missing() { return kernels::missing_device(); }

void measure_environment(Session& session) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != text.npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  int runtime = 0;
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
  session.file.write(environment_line(
      variables,
      {{"device", kernels::device_name()},
       {"cuda_runtime", std::to_string(runtime)},
       {"memory_B", std::to_string(all_bytes)},
       {"l2_cache_B", std::to_string(attribute(cudaDevAttrL2CacheSize))},
       {"coherent_host_memory",
        attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables) != 0 ? "yes" : "no"}},
      session.provenance));
}

// [M87] The copy over buffers far larger than the caches is the ceiling of all memory passes.
void measure_memory(Session& session, Stopwatch& stopwatch) {
  const bool quick = session.options.extent == Extent::quick;
  for (int exponent = 20; exponent <= 30; exponent += quick ? 5 : 2) {
    const std::size_t count = (std::size_t{1} << exponent) / sizeof(float);
    const int sets = stopwatch.sets_for(3 * count * sizeof(float));
    std::vector<std::array<device::Memory, 3>> data(static_cast<std::size_t>(sets));
    for (auto& set : data)
      for (std::size_t i = 0; i < 3; ++i) {
        set[i] = device::Memory(count * sizeof(float));
        fill_random(set[i].as<float>(), count, i, stopwatch.stream());
      }
    const auto of = [&](int set, std::size_t i) {
      return data[static_cast<std::size_t>(set)][i].as<float>();
    };
    const auto measured_row = [&](const char* name, double arrays, const Launch& launch) {
      Row row{.kind = "memory",
              .name = name,
              .measured = stopwatch.measure(session, launch, sets),
              .bytes = arrays * static_cast<double>(count * sizeof(float)),
              .copy_rate = {}};
      const double rate = *row.bytes / summary_of(row.measured.samples).median;
      session.progress(fmt::format("membw {} {} B: {:.1f} GB/s", name, *row.bytes, rate / 1e9));
      session.write(std::move(row));
      return rate;
    };
    session.copy_rate = measured_row("copy", 2, [&](int set, cudaStream_t stream) {
      copy_pass(of(set, 0), of(set, 1), count, stream);
    });
    measured_row("triad", 3, [&](int set, cudaStream_t stream) {
      triad_pass(of(set, 0), of(set, 1), of(set, 2), count, stream);
    });
  }
}

void measure_device(Session& session, const std::vector<GemmCase>& shapes) {
  check(cudaSetDevice(session.options.device), "cudaSetDevice");
  const Nvml nvml(bus_id(session.options.device));
  session.state = [&nvml] { return nvml.state(); };
  session.provenance.gpu = kernels::device_name();
  session.provenance.driver = nvml.driver();
  Stopwatch stopwatch;
  const auto asked = [&](Family family) {
    return std::ranges::find(session.options.families, family) != session.options.families.end();
  };
  if (asked(Family::env)) measure_environment(session);
  // Kernels are stated as shares of the copy: it is measured for them too.
  if (asked(Family::membw) || asked(Family::kernels)) measure_memory(session, stopwatch);
  if (asked(Family::kernels)) measure_kernels(session, stopwatch);
  if (asked(Family::gemm)) measure_gemms(session, stopwatch, shapes);
  if (asked(Family::attention)) measure_attention(session, stopwatch);
  if (asked(Family::xfer)) measure_copies(session, stopwatch);
  if (asked(Family::nccl)) measure_collectives(session);
}

}  // namespace scapesim::bench
