// SPDX-License-Identifier: Apache-2.0
// What nccl-tests does not give: SCAPE's collectives alone, in groups and beside matrix products,
// and how much these slow down. One process, all devices of the machine.
#include <fmt/format.h>
#include <nccl.h>

#include "kernels/bench/cuda/families.hpp"
#include "kernels/bench/cuda/passes.hpp"
#include "kernels/device/gemm.hpp"

namespace scapesim::bench {

namespace {

using device::check;

void check_nccl(ncclResult_t code, const char* call) {
  if (code != ncclSuccess)
    throw kernels::CudaError(std::string(call) + ": " + ncclGetErrorString(code));
}

/// One device's part in the collectives and in the work beside them.
struct Rank {
  int device;
  ncclComm_t communicator = nullptr;
  device::StreamOwner stream, compute;
  device::EventOwner begin, end, compute_begin, compute_end;
  device::Memory buffer, gathered;
  std::unique_ptr<device::Gemm> product;
  device::Memory a, b, c;
};

constexpr long kSide = 4096;
constexpr int kProducts = 8;

class Ring {
 public:
  Ring(int ranks, std::size_t most_bytes) {
    std::vector<ncclComm_t> communicators(static_cast<std::size_t>(ranks));
    check_nccl(ncclCommInitAll(communicators.data(), ranks, nullptr), "ncclCommInitAll");
    for (int device = 0; device < ranks; ++device) {
      check(cudaSetDevice(device), "cudaSetDevice");
      Rank rank{.device = device,
                .communicator = communicators[static_cast<std::size_t>(device)],
                .stream = device::make_stream(),
                .compute = device::make_stream(),
                .begin = device::make_event(),
                .end = device::make_event(),
                .compute_begin = device::make_event(),
                .compute_end = device::make_event(),
                .buffer = device::Memory(most_bytes),
                .gathered = device::Memory(most_bytes),
                .product = std::make_unique<device::Gemm>(device::GemmShape{kSide, kSide, kSide}),
                .a = {},
                .b = {},
                .c = {}};
      for (device::Memory* matrix : {&rank.a, &rank.b, &rank.c}) {
        *matrix = device::Memory(rank.product->a_bytes());
        fill_random_bf16(matrix->as<void>(), matrix->bytes() / 2, 1, rank.compute.get());
      }
      fill_random(rank.buffer.as<float>(), most_bytes / sizeof(float), 2, rank.stream.get());
      ranks_.push_back(std::move(rank));
    }
    wait();
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    for (const Rank& rank : ranks_) static_cast<void>(ncclCommDestroy(rank.communicator));
  }

  int ranks() const { return static_cast<int>(ranks_.size()); }

  struct Work {
    const char* collective;  ///< "all-reduce" or "all-gather"
    std::size_t bytes;       ///< nccl-tests size
    int grouped = 1;         ///< calls of bytes / grouped each
    int calls = 1;           ///< 0: only the products
    int products = 0;        ///< beside it
  };
  /// Seconds of the collective on the slowest device, and of the products.
  struct Times {
    double collective = 0;
    double products = 0;
  };
  Times once(const Work& work) {
    for (Rank& rank : ranks_) {
      check(cudaSetDevice(rank.device), "cudaSetDevice");
      record(rank.compute_begin, rank.compute);
      for (int i = 0; i < work.products; ++i)
        rank.product->run(rank.a.as<void>(), rank.b.as<void>(), rank.c.as<void>(),
                          rank.compute.get());
      record(rank.compute_end, rank.compute);
      record(rank.begin, rank.stream);
    }
    for (int i = 0; i < work.calls; ++i) call(work);
    for (Rank& rank : ranks_) {
      check(cudaSetDevice(rank.device), "cudaSetDevice");
      record(rank.end, rank.stream);
    }
    wait();
    Times times;
    for (const Rank& rank : ranks_) {
      times.collective =
          std::max(times.collective, device::seconds_between(rank.begin.get(), rank.end.get()));
      times.products = std::max(times.products, device::seconds_between(rank.compute_begin.get(),
                                                                        rank.compute_end.get()));
    }
    return times;
  }

 private:
  static void record(const device::EventOwner& event, const device::StreamOwner& stream) {
    check(cudaEventRecord(event.get(), stream.get()), "cudaEventRecord");
  }
  void wait() const {
    for (const Rank& rank : ranks_) {
      kernels::wait_for(rank.stream.get());
      kernels::wait_for(rank.compute.get());
    }
  }
  void call(const Work& work) {
    const bool reduce = std::string_view(work.collective) == "all-reduce";
    const std::size_t each = work.bytes / static_cast<std::size_t>(work.grouped);
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (const Rank& rank : ranks_)
      for (int i = 0; i < work.grouped; ++i) {
        float* const own = rank.buffer.as<float>() + static_cast<std::size_t>(i) * each / 4;
        if (reduce)
          check_nccl(ncclAllReduce(own, own, each / 4, ncclFloat32, ncclAvg, rank.communicator,
                                   rank.stream.get()),
                     "ncclAllReduce");
        else
          check_nccl(ncclAllGather(own, rank.gathered.as<float>(), each / ranks_.size(), ncclUint8,
                                   rank.communicator, rank.stream.get()),
                     "ncclAllGather");
      }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  }

  std::vector<Rank> ranks_;
};

/// What a row says beyond kind and name.
struct Words {
  std::string beside;
  int grouped = 1;
};

void write(const Session& session, const Ring& ring, const Ring::Work& work, const Words& words,
           Measured measured) {
  const bool products = work.calls == 0 || words.beside == work.collective;
  Row row{.kind = products ? "gemm" : "collective",
          .name = products ? "products of 4096" : work.collective,
          .measured = std::move(measured),
          .bytes = {},
          .copy_rate = {}};
  if (products) {
    row.numbers = {{"m", kSide}, {"n", kSide}, {"k", kSide}, {"repeated", kProducts}};
    row.texts["dtype"] = "bf16";
  } else {
    row.bytes = static_cast<double>(work.bytes);
    row.numbers = {{"ranks", ring.ranks()}, {"nodes", 1}, {"grouped", words.grouped}};
    row.texts["dtype"] = std::string_view(work.collective) == "all-reduce" ? "float" : "uint8";
  }
  if (!words.beside.empty()) row.texts["beside"] = words.beside;
  session.progress(fmt::format("nccl {} {} B {}: {:.1f} us", row.name, work.bytes, words.beside,
                               1e6 * summary_of(row.measured.samples).median));
  session.write(std::move(row));
}

}  // namespace

void measure_collectives(Session& session) {
  int ranks = 0;
  check(cudaGetDeviceCount(&ranks), "cudaGetDeviceCount");
  if (ranks < 2) session.progress("nccl: one device, nothing travels (rows say ranks 1)");
  constexpr std::size_t kMost = std::size_t{1} << 30U;
  Ring ring(ranks, kMost);
  const auto timed = [&](const Ring::Work& work, double Ring::Times::*part) {
    return measure(
        session.options.rules, [&](int) { return ring.once(work).*part; }, session.stop);
  };
  const bool quick = session.options.extent == Extent::quick;
  for (int exponent = 20; exponent <= 30; exponent += quick ? 5 : 2)
    for (const char* collective : {"all-reduce", "all-gather"}) {
      Ring::Work work{.collective = collective, .bytes = std::size_t{1} << exponent};
      write(session, ring, work, {}, timed(work, &Ring::Times::collective));
      if (work.collective == std::string_view("all-reduce")) {
        work.grouped = 4;
        write(session, ring, work, {.beside = {}, .grouped = 4},
              timed(work, &Ring::Times::collective));
        work.grouped = 1;
      }
      work.products = kProducts;
      write(session, ring, work, {.beside = "matrix products"},
            timed(work, &Ring::Times::collective));
      write(session, ring, work, {.beside = collective}, timed(work, &Ring::Times::products));
    }
  const Ring::Work alone{.collective = "", .bytes = 0, .calls = 0, .products = kProducts};
  write(session, ring, alone, {}, timed(alone, &Ring::Times::products));
  check(cudaSetDevice(session.options.device), "cudaSetDevice");
}

}  // namespace scapesim::bench
