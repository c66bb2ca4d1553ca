// SPDX-License-Identifier: Apache-2.0
// Clocks, temperature and throttle reasons from NVIDIA's management library, loaded at run time
// where it is there. It reads only.
#pragma once

#include <memory>
#include <string>

#include "kernels/bench/row.hpp"

namespace scapesim::bench {

class Nvml {
 public:
  /// The device with this PCI bus id ("0000:01:00.0"). Without the library everything is absent.
  explicit Nvml(const std::string& bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  DeviceState state() const;
  /// "580.65.06"; empty when unknown.
  std::string driver() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace scapesim::bench
