// Spreads the blocks of a launch over OS threads, each with its own BlockRunner.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tuner/device/host_block.h"

namespace tuner {

class HostPool {
 public:
  explicit HostPool(int threads);
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  /// Runs every block; returns when all are done. What the failed block of lowest index did wrong, or nothing.
  std::optional<std::string> run(const HostKernel& kernel, std::uint64_t seed);

 private:
  struct Job {
    HostKernel kernel{};
    std::uint64_t seed = 0;
    std::uint64_t blocks = 0;
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
  };
  void serve();
  void run_blocks(BlockRunner& runner);
  void record(std::uint64_t block, std::string what);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::uint64_t generation_ = 0;
  std::size_t busy_ = 0;
  bool closing_ = false;
  Job job_;
  std::optional<std::pair<std::uint64_t, std::string>> failure_;
  std::vector<std::thread> threads_;
};

}  // namespace tuner
