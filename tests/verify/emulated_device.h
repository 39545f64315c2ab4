// The verifier's CUDA kernels on the CPU: a fibre per thread of a block, blocks one after another. Include it alone in
// a source file, before anything else that reads the kernels.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/device/memory_device.h"
#include "tuner/device/fibre.h"
#include "tuner/verify/generator.cuh"
#include "tuner/verify/reference.cuh"

namespace emulation {

constexpr unsigned kThreads = 256;

struct Index {
  unsigned x = 0;
};

/// The thread that runs now. One block runs at a time, all on one operating system thread.
struct Now {
  Index thread, block, grid;
  tuner::Fibre* fibre = nullptr;
  double lanes[kThreads] = {};
};
inline Now now;

inline void barrier() {
  tuner::Fibre* const fibre = now.fibre;
  fibre->suspend();
}

inline double shuffle_down(double value, int offset) {
  const unsigned self = now.thread.x;
  now.lanes[self] = value;
  barrier();
  const double got =
      self % 32 + static_cast<unsigned>(offset) < 32 ? now.lanes[self + static_cast<unsigned>(offset)] : value;
  barrier();
  return got;
}

}  // namespace emulation

// CUDA's words for the text of verify_kernels.cuh. `static` serves for shared memory since blocks run one at a time.
#define __CUDACC__
#define __global__ inline
#define __device__
#define __shared__ static
#define __syncthreads emulation::barrier
#define __shfl_down_sync(mask, value, offset) emulation::shuffle_down(value, offset)
#define atomicAdd(target, value) (*(target) += (value))
#define threadIdx emulation::now.thread
#define blockIdx emulation::now.block
#define gridDim emulation::now.grid
#include "tuner/verify/verify_kernels.cuh"
#undef __CUDACC__
#undef __global__
#undef __device__
#undef __shared__
#undef __syncthreads
#undef __shfl_down_sync
#undef atomicAdd
#undef threadIdx
#undef blockIdx
#undef gridDim

namespace emulation {

/// Runs one kernel: all fibres of a block go from barrier to barrier.
class Team {
 public:
  void run(unsigned blocks, std::function<void()> kernel) {
    kernel_ = std::move(kernel);
    now.grid.x = blocks;
    for (unsigned block = 0; block < blocks; ++block) {
      now.block.x = block;
      for (Member& member : members_) member.done = false;
      for (bool running = true; running;) {
        running = false;
        for (unsigned i = 0; i < kThreads; ++i) {
          if (members_[i].done) continue;
          now.thread.x = i;
          now.fibre = members_[i].fibre.get();
          now.fibre->resume();
          running = running || !members_[i].done;
        }
      }
    }
  }

  Team() : members_(kThreads) {
    for (unsigned i = 0; i < kThreads; ++i) {
      members_[i].team = this;
      members_[i].fibre = std::make_unique<tuner::Fibre>(arena_.open_stack(i), &Team::body, &members_[i]);
    }
  }

 private:
  struct Member {
    Team* team = nullptr;
    std::unique_ptr<tuner::Fibre> fibre;
    bool done = false;
  };
  static void body(void* argument) {
    auto* const member = static_cast<Member*>(argument);
    member->team->kernel_();
    member->done = true;
  }

  tuner::FibreArena arena_;
  std::vector<Member> members_;
  std::function<void()> kernel_;
};

/// Ordinary memory with the verifier's kernels in place of a GPU.
class VerifyDevice : public tuner::testing::MemoryDevice {
 public:
  bool is_cuda() const override { return true; }
  tuner::Expected<std::unique_ptr<tuner::Module>> load(const tuner::CompiledUnit&) override {
    return std::unique_ptr<tuner::Module>(std::make_unique<VerifyModule>());
  }

 private:
  class VerifyModule : public tuner::Module {
   public:
    VerifyModule() {
      namespace check = ct1d::check;
      add("generate", &check::generate);
      add("finish_rows", &check::finish_rows);
      add("checksum", &check::checksum);
      add("exchange", &check::exchange);
      add("wanted<float>", &check::wanted<float>);
      add("wanted<ct1d::check::F16>", &check::wanted<check::F16>);
      add("wanted<ct1d::check::Bf16>", &check::wanted<check::Bf16>);
      add("reference<float, false>", &check::reference<float, false>);
      add("reference<float, true>", &check::reference<float, true>);
      add("reference<ct1d::check::F16, false>", &check::reference<check::F16, false>);
      add("reference<ct1d::check::Bf16, false>", &check::reference<check::Bf16, false>);
      add("compare<float>", &check::compare<float>);
      add("compare<ct1d::check::F16>", &check::compare<check::F16>);
      add("compare<ct1d::check::Bf16>", &check::compare<check::Bf16>);
    }
    using Module::launch_with;
    tuner::Expected<bool> launch(const tuner::Launch&, const ct1d::RunArguments&) override { return true; }
    tuner::Expected<bool> launch(const tuner::Launch&, const ct1d::PrepareArguments&) override { return true; }
    double occupancy(const tuner::Launch&) override { return 0; }
    tuner::Expected<bool> launch_with(const tuner::Launch& launch, const void* arguments, std::size_t bytes) override {
      const auto found = kernels_.find(launch.kernel);
      if (found == kernels_.end() || bytes != found->second.bytes || launch.shape.block_x != kThreads)
        return tuner::Failure{tuner::Outcome::launch_failed, "no such kernel: " + launch.kernel, {}};
      team_.run(launch.shape.grid_x, [&] { found->second.call(arguments); });
      return true;
    }

   private:
    struct Kernel {
      std::size_t bytes;
      std::function<void(const void*)> call;
    };
    template <class Arguments>
    void add(const std::string& name, void (*kernel)(Arguments)) {
      kernels_["ct1d::check::" + name] = {sizeof(Arguments),
                                          [kernel](const void* a) { kernel(*static_cast<const Arguments*>(a)); }};
    }
    std::map<std::string, Kernel> kernels_;
    Team team_;
  };
};

}  // namespace emulation
