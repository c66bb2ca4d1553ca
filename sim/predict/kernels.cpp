// SPDX-License-Identifier: Apache-2.0
#include "sim/predict/kernels.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <tuple>
#include <variant>

#include "sim/workload/workload.hpp"

namespace scapesim {
namespace {

using workload::Attention;
using workload::Gemm;
using workload::Operation;

Bytes element_size(spec::Precision precision) {
  switch (precision) {
    case spec::Precision::fp32:
      return Bytes(4);
    case spec::Precision::fp16:
    case spec::Precision::bf16:
      return Bytes(2);
    case spec::Precision::fp8:
    case spec::Precision::mxfp8:
      return Bytes(1);
    case spec::Precision::nvfp4:
      return Bytes(0.5);
  }
  return Bytes(2);
}

/// What kernels write, and attention reads: 2 bytes at least.
Bytes wide_size(spec::Precision precision) { return std::max(element_size(precision), Bytes(2)); }

double count(std::int64_t number) { return static_cast<double>(number); }

Bytes bytes_of(const Gemm& gemm, spec::Precision precision) {
  const double read = count(gemm.m) * count(gemm.k) + count(gemm.k) * count(gemm.n);
  const double written = count(gemm.m) * count(gemm.n);
  // An fp32 accumulator is read and written.
  const Bytes each = gemm.accumulate_fp32 ? Bytes(8) : wide_size(precision);
  return count(gemm.groups) * (read * element_size(precision) + written * each);
}

Bytes bytes_of(const Attention& a, spec::Precision precision) {
  const double width = count(a.head_dim);
  const double value_width = count(a.value_head_dim.value_or(a.head_dim));
  const double query_rows = count(a.batch) * count(a.sequence) * count(a.heads);
  const double key_rows = count(a.batch) * count(a.kv_sequence.value_or(a.sequence)) *
                          count(a.kv_heads.value_or(a.heads));
  const double forward = query_rows * (width + value_width) + key_rows * (width + value_width);
  // Backward: those again, the output's gradient, and the gradients of queries, keys and values.
  const double backward =
      forward + query_rows * (value_width + width) + key_rows * (width + value_width);
  return (a.backward ? backward : forward) * wide_size(precision);
}

std::string shape_of(const Gemm& gemm) {
  return fmt::format("m{} n{} k{}{}", gemm.m, gemm.n, gemm.k,
                     gemm.groups > 1 ? fmt::format(" x{}", gemm.groups) : "");
}

std::string shape_of(const Attention& a) {
  return fmt::format("b{} h{} s{} d{}{}", a.batch, a.heads, a.sequence, a.head_dim,
                     a.causal ? " causal" : "");
}

/// None for exchanges.
std::optional<Kernel> kernel_of(const Operation& operation, spec::Precision precision) {
  Kernel kernel{.name = operation.name, .kind = "pass", .shape = {}};
  if (const auto* gemm = std::get_if<Gemm>(&operation.shape)) {
    kernel.kind = "gemm";
    kernel.shape = shape_of(*gemm);
    kernel.bytes = bytes_of(*gemm, precision);
  } else if (const auto* attention = std::get_if<Attention>(&operation.shape)) {
    kernel.kind = "attention";
    kernel.shape = shape_of(*attention);
    kernel.bytes = bytes_of(*attention, precision);
  } else if (const auto* pass = std::get_if<workload::Pass>(&operation.shape)) {
    kernel.bytes = pass->traffic;
  } else {
    return std::nullopt;
  }
  return kernel;
}

}  // namespace

// [M490]
std::vector<Kernel> kernels_of(const spec::Scenario& scenario, const cost::Profile& profile) {
  const workload::Workload workload =
      workload::workload_of(scenario.model, scenario.training, scenario.parallelism);
  const spec::Precision precision = scenario.training.precision;
  const cost::KernelCosts costs(profile, scenario.cluster.gpu, precision,
                                cost::fleet_of(profile, scenario.cluster));
  std::map<std::tuple<std::string, std::string, double>, Kernel> kernels;
  for (const workload::Layer& layer : workload.layers)
    for (const auto* operations : {&layer.forward, &layer.backward})
      for (const Operation& operation : *operations) {
        std::optional<Kernel> kernel = kernel_of(operation, precision);
        if (!kernel) continue;
        const std::tuple key{kernel->name, kernel->shape, kernel->bytes.si()};
        const auto [known, is_new] = kernels.try_emplace(key, std::move(*kernel));
        if (is_new) {
          known->second.flops = workload::flops_of(operation);
          known->second.time = workload::time_of(operation, costs);
        }
        ++known->second.calls;
      }
  std::vector<Kernel> list;
  for (auto& [key, kernel] : kernels) list.push_back(std::move(kernel));
  std::ranges::stable_sort(list, std::greater{}, [](const Kernel& k) { return k.time * k.calls; });
  return list;
}

}  // namespace scapesim
