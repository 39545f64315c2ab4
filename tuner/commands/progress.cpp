#include "tuner/commands/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tuner {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string duration(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min {:02.0f} s", std::floor(seconds / 60), seconds - 60 * std::floor(seconds / 60));
}

/// A log that cannot be written is no reason to stop.
void put(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace

void Progress::note(const std::string& text) {
  if (verbosity_ == Verbosity::quiet) return;
  clear();
  put(text + "\n");
}

void Progress::detail(const std::string& text) {
  if (verbosity_ == Verbosity::verbose) note(text);
}

void Progress::begin(const std::string& label, std::size_t total, std::optional<double> seconds) {
  label_ = label;
  best_.clear();
  done_ = stored_ = 0;
  total_ = total;
  seconds_ = seconds;
  start_ = last_draw_ = Clock::now();
}

void Progress::step(const std::string& best, bool from_store) {
  ++done_;
  stored_ += from_store ? 1 : 0;
  best_ = best;
  // A terminal is redrawn ten times a second; a log gets a line every ten seconds.
  if (verbosity_ == Verbosity::quiet || seconds_since(last_draw_) < (bar_ ? 0.1 : 10.0)) return;
  draw(false);
}

void Progress::end() {
  if (verbosity_ != Verbosity::quiet && done_ > 0) draw(true);
}

void Progress::draw(bool last) {
  last_draw_ = Clock::now();
  const double elapsed = seconds_since(start_);
  const double rate = elapsed > 0 ? static_cast<double>(done_ - stored_) / elapsed : 0;
  double left = rate > 0 ? static_cast<double>(total_ - std::min(total_, done_)) / rate : 0;
  if (seconds_) left = std::min(left, std::max(0.0, *seconds_ - elapsed));
  std::string line = fmt::format("{}: {}/{}", label_, done_, total_);
  if (stored_ > 0) line += fmt::format(", {} from the store", stored_);
  if (done_ > stored_) line += fmt::format(", {:.1f}/s", rate);
  if (!best_.empty()) line += ", best " + best_;
  line += last ? fmt::format(", took {}", duration(elapsed)) : fmt::format(", {} left", duration(left));
  if (bar_ && !last) {
    put("\r\x1b[K" + line.substr(0, 160));
    std::fflush(stderr);
    drawn_ = true;
  } else {
    clear();
    put(line + "\n");
  }
}

void Progress::clear() {
  if (!drawn_) return;
  put("\r\x1b[K");
  drawn_ = false;
}

}  // namespace tuner
