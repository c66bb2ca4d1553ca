// SPDX-License-Identifier: Apache-2.0
// Lanes are streams; payload and mask have an NCCL communicator each, so that a mask on its way
// does not hold a payload up. Copies run on the device's copy engines.
#include <array>
#include <nccl.h>
#include <optional>
#include <vector>

#include "kernels/device/gemm.hpp"
#include "kernels/device/runtime.hpp"
#include "kernels/step/backends.hpp"

namespace scapesim::step {

using device::check;

namespace {

void check_nccl(ncclResult_t code, const char* call) {
  if (code != ncclSuccess)
    throw kernels::CudaError(std::string(call) + ": " + ncclGetErrorString(code) + " (" +
                             ncclGetLastError(nullptr) + ")");
}

/// Events that nobody holds any more are used again: a wait that was enqueued keeps what it needs.
using EventPool = std::vector<device::EventOwner>;

struct DeviceEvent final : Event::State {
  DeviceEvent(std::shared_ptr<EventPool> owner, device::EventOwner taken)
      : pool(std::move(owner)), event(std::move(taken)) {}
  ~DeviceEvent() override { pool->push_back(std::move(event)); }
  std::shared_ptr<EventPool> pool;
  device::EventOwner event;
};

cudaEvent_t device_event(const Event& event) {
  return static_cast<const DeviceEvent&>(*event.state()).event.get();
}

class Communicator {
 public:
  Communicator(int rank, int ranks, const Agree& agree) {
    ncclUniqueId id{};
    if (rank == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::string text = agree(std::string(id.internal, sizeof id.internal));
    if (text.size() != sizeof id.internal)
      throw kernels::CudaError("rank 0 sent an id of " + std::to_string(text.size()) + " bytes");
    text.copy(id.internal, sizeof id.internal);
    check_nccl(ncclCommInitRank(&communicator_, ranks, id, rank), "ncclCommInitRank");
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() { static_cast<void>(ncclCommDestroy(communicator_)); }
  ncclComm_t get() const { return communicator_; }

 private:
  ncclComm_t communicator_ = nullptr;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(int rank, int ranks, int device, const Agree& agree)
      : rank_(rank), ranks_(ranks), device_(device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    // The payload is what the step waits for: its kernels go first.
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      streams_[lane] = device::make_stream(static_cast<Lane>(lane) == Lane::payload ? -1 : 0);
    payload_ = std::make_unique<Communicator>(rank, ranks, agree);
    mask_ = std::make_unique<Communicator>(rank, ranks, agree);
  }
  ~CudaBackend() override { static_cast<void>(cudaDeviceSynchronize()); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void* allocate(std::size_t bytes, Where where) override {
    const std::size_t some = bytes > 0 ? bytes : 1;
    if (where == Where::device) return device_memory_.emplace_back(some).as<void>();
    return host_memory_.emplace_back(some).as<void>();
  }

  Event record(Lane lane) override {
    device::EventOwner event;
    if (pool_->empty()) {
      event = device::make_event();
    } else {
      event = std::move(pool_->back());
      pool_->pop_back();
    }
    check(cudaEventRecord(event.get(), stream(lane)), "cudaEventRecord");
    return Event(std::make_shared<DeviceEvent>(pool_, std::move(event)));
  }
  void wait(Lane lane, const Event& event) override {
    if (event) check(cudaStreamWaitEvent(stream(lane), device_event(event)), "cudaStreamWaitEvent");
  }
  void synchronise() override {
    for (const auto& own : streams_) kernels::wait_for(own.get());
    for (const auto* communicator : {payload_.get(), mask_.get()}) {
      ncclResult_t code = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(communicator->get(), &code), "ncclCommGetAsyncError");
      check_nccl(code, "a collective");
    }
  }
  double seconds_between(const Event& begin, const Event& end) override {
    return device::seconds_between(device_event(begin), device_event(end));
  }

  void copy(Lane lane, void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream(lane)), "cudaMemcpyAsync");
  }
  void clear(Lane lane, void* memory, std::size_t bytes) override {
    check(cudaMemsetAsync(memory, 0, bytes, stream(lane)), "cudaMemsetAsync");
  }

  void run(Lane lane, const Accumulate& arguments) override {
    kernels::accumulate(arguments, stream(lane));
  }
  void run(Lane lane, const Gather& arguments) override {
    kernels::gather(arguments, stream(lane));
  }
  void run(Lane lane, const Select& arguments) override {
    kernels::select_threshold(arguments, stream(lane));
    kernels::select_mask(arguments, stream(lane));
  }
  void run(Lane lane, const kernels::Stitch& arguments) override {
    kernels::stitch_masks(arguments, stream(lane));
  }
  void run(Lane lane, const kernels::ScanTiles& arguments) override {
    kernels::scan_tiles(arguments, stream(lane));
  }
  void run(Lane lane, const SelectedNorm& arguments) override {
    kernels::selected_norm(arguments, stream(lane));
  }
  void run(Lane lane, const ScatterAdamS& arguments) override {
    kernels::scatter_adams(arguments, stream(lane));
  }
  void run(Lane lane, const WriteBack& arguments) override {
    kernels::write_back(arguments, stream(lane));
  }

  void all_reduce_mean(Lane lane, float* values, std::size_t count) override {
    all_reduce(lane, values, count, ncclAvg);
  }
  void all_reduce_sum(Lane lane, float* values, std::size_t count) override {
    all_reduce(lane, values, count, ncclSum);
  }
  void all_gather(Lane lane, const std::uint8_t* own, std::uint8_t* all,
                  std::size_t bytes) override {
    check_nccl(ncclAllGather(own, all, bytes, ncclUint8, communicator(lane), stream(lane)),
               "ncclAllGather");
  }

  void stand_in(const StandIn& stand_in) {
    if (!product_) {
      product_.emplace(device::GemmShape{kSide, kSide, kSide});
      for (device::Memory& matrix : matrices_) {
        matrix = device::Memory(product_->a_bytes());
        check(cudaMemset(matrix.as<void>(), 0x3c, matrix.bytes()), "cudaMemset");
      }
    }
    constexpr double kFlops = 2.0 * kSide * kSide * kSide;
    for (double done = 0; done < stand_in.flops; done += kFlops)
      product_->run(matrices_[0].as<void>(), matrices_[1].as<void>(), matrices_[2].as<void>(),
                    stream(Lane::compute));
  }

 private:
  static constexpr long kSide = 4096;

  cudaStream_t stream(Lane lane) const { return streams_[static_cast<std::size_t>(lane)].get(); }
  ncclComm_t communicator(Lane lane) const {
    return (lane == Lane::mask ? mask_ : payload_)->get();
  }
  void all_reduce(Lane lane, float* values, std::size_t count, ncclRedOp_t operation) {
    check_nccl(ncclAllReduce(values, values, count, ncclFloat32, operation, communicator(lane),
                             stream(lane)),
               "ncclAllReduce");
  }

  int rank_;
  int ranks_;
  int device_;
  std::array<device::StreamOwner, kLanes> streams_;
  std::shared_ptr<EventPool> pool_ = std::make_shared<EventPool>();
  std::vector<device::Memory> device_memory_;
  std::vector<device::HostMemory> host_memory_;
  std::unique_ptr<Communicator> payload_;
  std::unique_ptr<Communicator> mask_;
  std::optional<device::Gemm> product_;
  std::array<device::Memory, 3> matrices_;
};

}  // namespace

std::string cuda_missing() { return kernels::missing_device(); }

int cuda_devices() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

std::unique_ptr<Backend> cuda_backend(int rank, int ranks, int device, const Agree& agree) {
  return std::make_unique<CudaBackend>(rank, ranks, device, agree);
}

void run_stand_in(Backend& backend, const StandIn& stand_in) {
  static_cast<CudaBackend&>(backend).stand_in(stand_in);
}

}  // namespace scapesim::step
