// SPDX-License-Identifier: Apache-2.0
// Copies between pinned host memory and the device: alone, beside the other direction, and beside a
// kernel that fills the device's memory bandwidth.
#include <fmt/format.h>

#include "kernels/bench/cuda/families.hpp"
#include "kernels/bench/cuda/passes.hpp"

namespace scapesim::bench {

namespace {

using device::check;

enum class Beside { nothing, reverse_copy, device_memory };

struct CopyCase {
  cudaMemcpyKind direction;
  const char* name;
  Beside beside;
  const char* word;  ///< in the row
};
constexpr CopyCase kCases[] = {
    {cudaMemcpyHostToDevice, "host-to-device", Beside::nothing, ""},
    {cudaMemcpyDeviceToHost, "device-to-host", Beside::nothing, ""},
    {cudaMemcpyHostToDevice, "host-to-device", Beside::reverse_copy, "reverse copy"},
    {cudaMemcpyDeviceToHost, "device-to-host", Beside::reverse_copy, "reverse copy"},
    {cudaMemcpyHostToDevice, "host-to-device", Beside::device_memory, "device memory"},
    {cudaMemcpyDeviceToHost, "device-to-host", Beside::device_memory, "device memory"},
};

/// Buffers and streams of one size.
class CopyRig {
 public:
  explicit CopyRig(std::size_t bytes)
      : bytes_(bytes),
        host_(bytes),
        other_host_(bytes),
        device_(bytes),
        other_device_(bytes),
        busy_(2 * kBusyBytes),
        background_(device::make_stream()) {
    for (const device::Memory* memory : {&device_, &other_device_, &busy_})
      fill_random(memory->as<float>(), memory->bytes() / sizeof(float), 1, background_.get());
    for (const device::HostMemory* memory : {&host_, &other_host_})
      check(cudaMemcpyAsync(memory->as<void>(), device_.as<void>(), bytes, cudaMemcpyDeviceToHost,
                            background_.get()),
            "cudaMemcpyAsync");
    kernels::wait_for(background_.get());
  }

  /// Seconds of one copy, with as much beside it as lasts longer.
  double once(const CopyCase& copy, Stopwatch& stopwatch) const {
    if (copy.beside == Beside::reverse_copy) {
      const bool in = copy.direction == cudaMemcpyHostToDevice;
      for (int i = 0; i < 3; ++i)
        enqueue(in ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, other_host_, other_device_,
                background_.get());
    }
    if (copy.beside == Beside::device_memory)
      for (std::size_t done = 0; done < 64 * bytes_ + 4 * kBusyBytes; done += kBusyBytes)
        copy_pass(busy_.as<float>(), busy_.as<float>() + kBusyBytes / sizeof(float),
                  kBusyBytes / sizeof(float), background_.get());
    const double seconds =
        stopwatch.once([&] { enqueue(copy.direction, host_, device_, stopwatch.stream()); });
    kernels::wait_for(background_.get());
    return seconds;
  }

 private:
  static constexpr std::size_t kBusyBytes = std::size_t{256} << 20U;

  void enqueue(cudaMemcpyKind direction, const device::HostMemory& host,
               const device::Memory& device, cudaStream_t stream) const {
    const bool in = direction == cudaMemcpyHostToDevice;
    check(cudaMemcpyAsync(in ? device.as<void>() : host.as<void>(),
                          in ? host.as<void>() : device.as<void>(), bytes_, direction, stream),
          "cudaMemcpyAsync");
  }

  std::size_t bytes_;
  device::HostMemory host_, other_host_;
  device::Memory device_, other_device_, busy_;
  device::StreamOwner background_;
};

}  // namespace

void measure_copies(Session& session, Stopwatch& stopwatch) {
  for (const std::size_t bytes : copy_sizes(session.options.extent)) {
    const CopyRig rig(bytes);
    for (const CopyCase& copy : kCases) {
      Row row{
          .kind = "copy",
          .name = copy.name,
          .measured = measure(
              session.options.rules, [&](int) { return rig.once(copy, stopwatch); }, session.stop),
          .bytes = static_cast<double>(bytes),
          .copy_rate = {}};
      if (copy.beside != Beside::nothing) row.texts["beside"] = copy.word;
      session.progress(fmt::format("xfer {} {} B {}: {:.1f} GB/s", row.name, bytes, copy.word,
                                   *row.bytes / summary_of(row.measured.samples).median / 1e9));
      session.write(std::move(row));
    }
  }
}

}  // namespace scapesim::bench
