// The `fault` family (tests/families/fault) before a worker: its variants, and what becomes of them.
#pragma once

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "tests/commands/processes.h"
#include "tests/core/temporary_folder.h"
#include "tuner/core/config.h"
#include "tuner/family/family.h"
#include "tuner/jit/jit.h"
#include "tuner/worker/worker.h"

namespace tuner::faults {

inline Variant variant_of(const std::string& fault, std::int64_t repeat = 1) {
  return {"fault", {{"fault", fault}, {"block", Block{128, 1}}, {"repeat", repeat}}};
}

/// Where the program's own test runs keep compiled units.
inline std::filesystem::path test_cache() {
  return std::filesystem::path(TUNER_WITH_FAULTS).replace_filename("test-cache") / "tuner";
}

/// Calls `act` with the pid of this process's one worker once that has used `cpu_seconds` more than at the beginning.
class Saboteur {
 public:
  Saboteur(double cpu_seconds, std::function<void(pid_t)> act)
      : thread_([this, cpu_seconds, act = std::move(act)] {
          const auto worker = helpers_of(getpid(), "__worker");
          const auto begin = worker.size() == 1 ? facts_of(worker.front()) : std::nullopt;
          if (!begin) return;
          while (!over_) {
            const auto now = facts_of(worker.front());
            if (!now) return;
            if (now->cpu_seconds >= begin->cpu_seconds + cpu_seconds) {
              acted_ = true;
              return act(worker.front());
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
          }
        }) {}
  ~Saboteur() {
    over_ = true;
    thread_.join();
  }
  bool acted() const { return acted_; }

 private:
  std::atomic<bool> over_ = false, acted_ = false;
  std::thread thread_;  // last: it uses the above
};

}  // namespace tuner::faults
