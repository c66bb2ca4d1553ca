// SPDX-License-Identifier: Apache-2.0
#include "calib/import_kernels.hpp"

#include <algorithm>
#include <map>

#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

struct Pattern {
  KernelClass kind;
  std::string_view part;
};

constexpr Pattern kPatterns[] = {
    {KernelClass::nccl, "nccl"},      {KernelClass::attention, "flash"},
    {KernelClass::attention, "fmha"}, {KernelClass::attention, "attention"},
    {KernelClass::attention, "attn"}, {KernelClass::attention, "sdpa"},
    {KernelClass::gemm, "gemm"},      {KernelClass::gemm, "gemv"},
    {KernelClass::gemm, "nvjet"},     {KernelClass::gemm, "cutlass"},
    {KernelClass::gemm, "xmma"},      {KernelClass::gemm, "matmul"},
    {KernelClass::gemm, "splitk"},    {KernelClass::pass, "elementwise"},
    {KernelClass::pass, "reduce"},    {KernelClass::pass, "softmax"},
    {KernelClass::pass, "norm"},      {KernelClass::pass, "multi_tensor"},
    {KernelClass::pass, "adam"},      {KernelClass::pass, "triton"},
    {KernelClass::pass, "copy"},      {KernelClass::pass, "cat"},
    {KernelClass::pass, "memset"},    {KernelClass::pass, "scatter"},
    {KernelClass::pass, "gather"},    {KernelClass::pass, "index"},
    {KernelClass::pass, "dropout"},   {KernelClass::pass, "fill"},
    {KernelClass::pass, "embedding"},
};

Seconds median(std::vector<Seconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  if (times.size() % 2 == 1) return *middle;
  return (*std::max_element(times.begin(), middle) + *middle) / 2;
}

/// A kernel begins (+1) or ends (-1).
struct Edge {
  Seconds at;
  bool communication = false;
  int change = 0;
};

OverlapSample overlap_of(int device, std::vector<Edge> edges) {
  std::ranges::sort(edges, {}, &Edge::at);
  OverlapSample sample{.device = device, .span = edges.back().at - edges.front().at};
  int communication = 0;
  int compute = 0;
  Seconds before = edges.front().at;
  for (const Edge& edge : edges) {
    const Seconds passed = edge.at - before;
    if (communication > 0) sample.communication += passed;
    if (compute > 0) sample.compute += passed;
    if (communication > 0 && compute > 0) sample.both += passed;
    (edge.communication ? communication : compute) += edge.change;
    before = edge.at;
  }
  return sample;
}

}  // namespace

KernelClass kernel_class(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const Pattern& pattern : kPatterns)
    if (lower.find(pattern.part) != lower.npos) return pattern.kind;
  return KernelClass::other;
}

void add_kernels(const std::vector<KernelSpan>& spans, const std::string& file,
                 Observations& into) {
  std::map<std::pair<KernelClass, std::string>, std::vector<Seconds>> times;
  std::map<int, std::vector<Edge>> edges;
  for (const KernelSpan& span : spans) {
    times[{span.kind, span.name}].push_back(span.end - span.begin);
    const bool communication = span.kind == KernelClass::nccl;
    edges[span.device].push_back({span.begin, communication, 1});
    edges[span.device].push_back({span.end, communication, -1});
  }
  for (const auto& [key, list] : times) {
    Seconds total;
    for (const Seconds time : list) total += time;
    into.kernels.push_back({.kind = key.first,
                            .name = key.second,
                            .count = static_cast<int>(list.size()),
                            .total = total,
                            .median = median(list),
                            .place = {.file = file}});
  }
  for (const auto& [device, list] : edges) into.overlaps.push_back(overlap_of(device, list));
}

}  // namespace scapesim::calib
