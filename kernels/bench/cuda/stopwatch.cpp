// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/cuda/stopwatch.hpp"

#include <algorithm>

#include "kernels/bench/cuda/passes.hpp"

namespace scapesim::bench {

using device::check;

namespace {

/// Below this an event pair measures itself.
constexpr double kShort = 50e-6;
constexpr int kReplays = 20;
constexpr std::size_t kCaches = 8;  ///< times the L2 cache that a flush writes

struct GraphDeleter {
  void operator()(cudaGraphExec_t graph) const { static_cast<void>(cudaGraphExecDestroy(graph)); }
};
using GraphOwner = std::unique_ptr<CUgraphExec_st, GraphDeleter>;

GraphOwner graph_of(const std::function<void()>& enqueue, cudaStream_t stream) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  enqueue();
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&executable, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  check(code, "cudaGraphInstantiate");
  return GraphOwner(executable);
}

}  // namespace

Stopwatch::Stopwatch()
    : stream_(device::make_stream()), begin_(device::make_event()), end_(device::make_event()) {
  int device = 0;
  int bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "cudaDeviceGetAttribute");
  cache_bytes_ = static_cast<std::size_t>(std::max(bytes, 1 << 20));
  flushed_ = device::Memory(kCaches * cache_bytes_);
}

int Stopwatch::sets_for(std::size_t bytes) const {
  if (bytes >= 4 * cache_bytes_) return 1;
  const std::size_t sets = 4 * cache_bytes_ / std::max<std::size_t>(bytes, 1) + 1;
  return static_cast<int>(std::clamp<std::size_t>(sets, 3, 64));
}

void Stopwatch::flush() {
  fill_random(flushed_.as<float>(), flushed_.bytes() / sizeof(float), 1, stream_.get());
}

double Stopwatch::once(const std::function<void()>& enqueue) {
  check(cudaEventRecord(begin_.get(), stream_.get()), "cudaEventRecord");
  enqueue();
  check(cudaEventRecord(end_.get(), stream_.get()), "cudaEventRecord");
  kernels::wait_for(stream_.get());
  return device::seconds_between(begin_.get(), end_.get());
}

double Stopwatch::after_flush(const std::function<void()>& enqueue) {
  flush();
  return once(enqueue);
}

Measured Stopwatch::measure(const Session& session, const Launch& launch, int sets) {
  launch(0, stream_.get());
  const double estimate = once([&] { launch(0, stream_.get()); });
  if (estimate >= kShort)
    return bench::measure(
        session.options.rules,
        [&](int number) { return after_flush([&] { launch(number % sets, stream_.get()); }); },
        session.stop);
  const int launches = std::max(kReplays, sets);
  const GraphOwner graph = graph_of(
      [&] {
        for (int i = 0; i < launches; ++i) launch(i % sets, stream_.get());
      },
      stream_.get());
  return bench::measure(
      session.options.rules,
      [&](int) {
        const double all =
            once([&] { check(cudaGraphLaunch(graph.get(), stream_.get()), "cudaGraphLaunch"); });
        return all / launches;
      },
      session.stop);
}

}  // namespace scapesim::bench
