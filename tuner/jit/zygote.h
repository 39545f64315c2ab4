// The coordinator's handle on the zygote: a process that has NVRTC loaded, never compiles by itself, and forks a fresh
// child for each compile.
//
// Every child thus starts from the same memory image: NVRTC's output depends on addresses, so the zygote runs without
// address randomisation, with a fixed stack limit and an environment of its own, and children read their request into
// memory in the same way each time.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tuner/jit/nvrtc_messages.h"

namespace tuner {

class Zygote {
 public:
  /// `program` implements `__zygote <descriptor>`; `candidates` are the libraries to try.
  Zygote(std::filesystem::path program, std::vector<std::string> candidates);
  ~Zygote();

  /// Starts the process. It dies with the calling thread: only call from a thread that outlives the Zygote. Throws
  /// EnvironmentError if it cannot be started or finds no NVRTC.
  NvrtcFound start();
  /// Safe from several threads, each of which outlives the Zygote. Nothing when `cancel` became readable, or when the
  /// zygote died twice in a row; a zygote that died is started again.
  std::optional<NvrtcReply> compile(const NvrtcRequest& request, int cancel);

 private:
  NvrtcFound start_locked();
  void stop_locked();
  Descriptor open_request();

  std::filesystem::path program_;
  std::vector<std::string> candidates_;
  std::mutex mutex_;
  Descriptor control_;
  pid_t process_ = -1;
};

}  // namespace tuner
