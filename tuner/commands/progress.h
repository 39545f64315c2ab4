// What a person sees on stderr while a run goes on: a bar that rewrites itself on a terminal, a line now and then
// elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "tuner/commands/command_line.h"

namespace tuner {

class Progress {
 public:
  Progress(Verbosity verbosity, bool bar) : verbosity_(verbosity), bar_(bar) {}
  ~Progress() { clear(); }

  /// A step of the run: "Compiling for sm_90a".
  void note(const std::string& text);
  /// A line that only --verbose shows.
  void detail(const std::string& text);
  /// Starts counting towards `total` evaluations of `label`; `seconds` is the time budget, if any.
  void begin(const std::string& label, std::size_t total, std::optional<double> seconds);
  /// One more is done; `best` describes the best so far ("8.91 ms tiled-1f2e..."). What the store knew took no time and
  /// says nothing of the rate.
  void step(const std::string& best, bool from_store);
  void end();

 private:
  void draw(bool last);
  void clear();

  Verbosity verbosity_;
  bool bar_;
  bool drawn_ = false;
  std::string label_, best_;
  std::size_t done_ = 0, stored_ = 0, total_ = 0;
  std::optional<double> seconds_;
  std::chrono::steady_clock::time_point start_, last_draw_;
};

}  // namespace tuner
