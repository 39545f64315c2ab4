// Spreads the clusters of a launch, single blocks where it has none, over OS threads, each with its own HostCluster.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tuner/device/host_cluster.h"

namespace tuner {

/// A block maps up to 2048 regions for its stacks, of 65530 that a process may have.
inline constexpr int kMaxPoolThreads = 20;

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
    std::uint64_t clusters = 0;
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stop{false};
  };
  void serve(std::size_t thread);
  void run_clusters(HostCluster& cluster);
  void record(std::uint64_t cluster, std::string what);

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
