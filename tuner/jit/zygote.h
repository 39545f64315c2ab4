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
#include <utility>
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
  /// zygote or the compile's process was ended from outside twice in a row; a zygote that died is started again. A
  /// child that a signal stopped cannot end its compile at the limit: 5 s later the zygote is killed with all its
  /// children, whose requests are repeated.
  std::optional<NvrtcReply> compile(const NvrtcRequest& request, int cancel);

 private:
  NvrtcFound start_locked();
  void stop_locked();
  /// Kills it, unless another one has taken its place.
  void stop(pid_t process);
  /// To a child of the zygote, and the zygote.
  std::pair<Descriptor, pid_t> open_request();

  std::filesystem::path program_;
  std::vector<std::string> candidates_;
  std::mutex mutex_;
  Descriptor control_;
  pid_t process_ = -1;
};

}  // namespace tuner
