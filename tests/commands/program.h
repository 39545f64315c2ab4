// The tuner executable as a child process: its streams, exit code and helper processes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/temporary_folder.h"

namespace tuner {

namespace fs = std::filesystem;

/// Asks every few milliseconds; false after `seconds`.
inline bool eventually(double seconds, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

struct ProgramOptions {
  fs::path folder = {};                               // to run in; empty: this one
  fs::path cache = {};                                // XDG_CACHE_HOME; empty: one beside the program, kept over runs
  fs::path out = {}, err = {};                        // files or devices for the streams, instead of capturing them
  bool terminal = false;                              // stdout is a terminal
  std::map<std::string, std::string> variables = {};  // added to the environment
  fs::path program = TUNER_PROGRAM;                   // or another build of it
};

struct Ended {
  int code = 0;  // exit code, or -signal if one ended it
  std::string out, err;
};

class ChildProgram {
 public:
  explicit ChildProgram(const std::vector<std::string>& arguments, const ProgramOptions& options = {})
      : options_(options) {
    std::vector<std::string> words{options.program.string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::map<std::string, std::string> variables{{"PATH", std::getenv("PATH")}, {"HOME", streams_.path().string()}};
    variables["XDG_CACHE_HOME"] = options.cache.empty()
                                      ? fs::path(TUNER_PROGRAM).replace_filename("test-cache").string()
                                      : options.cache.string();
    for (const auto& [name, value] : options.variables) variables[name] = value;
    std::vector<std::string> entries;
    for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
    if (options.terminal) open_terminal();
    const std::string out = options.terminal ? terminal_name_ : stream("out", options.out).string();
    const std::string err = stream("err", options.err).string(), folder = options.folder.string();
    std::vector<char*> argv = pointers(words), envp = pointers(entries);
    pid_ = fork();
    if (pid_ != 0) return;
    for (const auto& [descriptor, path] :
         {std::pair(0, std::string("/dev/null")), std::pair(1, out), std::pair(2, err)}) {
      const int file = ::open(path.c_str(), descriptor == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_NOCTTY, 0600);
      if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
      if (file > 2) close(file);
    }
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  /// Kills what still runs.
  ~ChildProgram() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (terminal_ >= 0) close(terminal_);
  }
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  pid_t pid() const { return pid_; }
  /// What it wrote to stderr so far.
  std::string err() const { return TemporaryFolder::content_of(streams_.path() / "err"); }

  /// Fails the test and kills it after `seconds`.
  Ended wait(double seconds = 300) {
    int status = 0;
    const bool ended = eventually(seconds, [&] {
      drain_terminal();
      return waitpid(pid_, &status, WNOHANG) == pid_;
    });
    if (!ended) {
      ADD_FAILURE() << "the program did not end within " << seconds << " s; stderr: " << err();
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
    }
    pid_ = -1;
    drain_terminal();
    return {WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
            options_.terminal ? shown_ : TemporaryFolder::content_of(streams_.path() / "out"), err()};
  }

 private:
  fs::path stream(const char* name, const fs::path& given) const {
    return given.empty() ? streams_.path() / name : given;
  }

  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> list;
    for (std::string& word : words) list.push_back(word.data());
    list.push_back(nullptr);
    return list;
  }

  void open_terminal() {
    terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (terminal_ < 0 || grantpt(terminal_) != 0 || unlockpt(terminal_) != 0)
      throw std::runtime_error("no pseudo terminal");
    terminal_name_ = ptsname(terminal_);
  }

  void drain_terminal() {
    char piece[4096];
    for (ssize_t got = 0; terminal_ >= 0 && (got = read(terminal_, piece, sizeof piece)) > 0;)
      shown_.append(piece, static_cast<std::size_t>(got));
  }

  TemporaryFolder streams_;
  ProgramOptions options_;
  std::string terminal_name_, shown_;
  int terminal_ = -1;
  pid_t pid_ = -1;
};

inline Ended run_to_end(const std::vector<std::string>& arguments, const ProgramOptions& options = {}) {
  return ChildProgram(arguments, options).wait();
}

/// tests/data/<name>.
inline fs::path data_file(const std::string& name) { return fs::path(TUNER_SOURCE_DIR) / "tests/data" / name; }

/// `tuner --config tests/data/tiny.json --device offline`, results under `out`.
inline Ended run_tiny(const fs::path& out, const std::vector<std::string>& more = {},
                      const ProgramOptions& options = {}) {
  std::vector<std::string> arguments{"--config", data_file("tiny.json"), "--device", "offline", "--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_to_end(arguments, options);
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace tuner
