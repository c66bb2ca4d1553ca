// SPDX-License-Identifier: Apache-2.0
// Prototypes are written down here, from NVIDIA's public API reference: its header is not needed.
#include "kernels/bench/nvml.hpp"

#include <array>
#include <dlfcn.h>

namespace scapesim::bench {

namespace {

using Device = void*;
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  Device device = nullptr;
  int (*shutdown)() = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;

  ~Library() {
    if (shutdown != nullptr) shutdown();
    if (handle != nullptr) dlclose(handle);
  }
  bool open(const std::string& bus_id);
};

bool Nvml::Library::open(const std::string& bus_id) {
  handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return false;
  auto* const init = symbol<int()>(handle, "nvmlInit_v2");
  auto* const by_bus =
      symbol<int(const char*, Device*)>(handle, "nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || by_bus == nullptr || init() != kSuccess) return false;
  shutdown = symbol<int()>(handle, "nvmlShutdown");
  clock = symbol<int(Device, int, unsigned*)>(handle, "nvmlDeviceGetClockInfo");
  temperature = symbol<int(Device, int, unsigned*)>(handle, "nvmlDeviceGetTemperature");
  throttle_reasons =
      symbol<int(Device, unsigned long long*)>(handle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  driver_version = symbol<int(char*, unsigned)>(handle, "nvmlSystemGetDriverVersion");
  return by_bus(bus_id.c_str(), &device) == kSuccess;
}

Nvml::Nvml(const std::string& bus_id) : library_(std::make_unique<Library>()) {
  if (!library_->open(bus_id)) library_.reset();
}

Nvml::~Nvml() = default;

DeviceState Nvml::state() const {
  DeviceState state;
  if (!library_) return state;
  unsigned value = 0;
  constexpr double kMega = 1e6;
  const Library& l = *library_;
  if (l.clock != nullptr && l.clock(l.device, kClockSm, &value) == kSuccess)
    state.sm_clock_hz = kMega * value;
  if (l.clock != nullptr && l.clock(l.device, kClockMemory, &value) == kSuccess)
    state.memory_clock_hz = kMega * value;
  if (l.temperature != nullptr && l.temperature(l.device, kTemperatureGpu, &value) == kSuccess)
    state.temperature_c = value;
  unsigned long long reasons = 0;
  if (l.throttle_reasons != nullptr && l.throttle_reasons(l.device, &reasons) == kSuccess)
    state.throttle_reasons = reasons;
  return state;
}

std::string Nvml::driver() const {
  std::array<char, 96> text{};
  if (!library_ || library_->driver_version == nullptr ||
      library_->driver_version(text.data(), text.size()) != kSuccess)
    return {};
  return text.data();
}

}  // namespace scapesim::bench
