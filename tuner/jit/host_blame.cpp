#include "tuner/jit/host_blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

namespace tuner {
namespace {

/// What the system refuses to a compiler, whatever it compiles. A file that is not there is the source's fault.
constexpr std::array kRefusals{ENOSPC, EDQUOT, EFBIG, EIO,   EROFS,    EMFILE,    ENFILE,   EAGAIN,
                               ENOMEM, EACCES, EPERM, EINTR, ESTALE,   ETXTBSY,   EBUSY,    ENXIO,
                               EPIPE,  ENODEV, EBADF, ELOOP, ENOTCONN, ETIMEDOUT, EREMOTEIO};

constexpr std::array<std::string_view, 6> kOutOfMemory{
    "out of memory",  "virtual memory exhausted", "memory exhausted",
    "std::bad_alloc", "Cannot allocate memory",   "failed to map segment"};  // the last is the dynamic loader's

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool out_of_memory(std::string_view text) {
  return std::any_of(kOutOfMemory.begin(), kOutOfMemory.end(), [&](auto part) { return holds(text, part); });
}

bool refused_by_system(std::string_view line) {
  return std::any_of(kRefusals.begin(), kRefusals.end(), [&](int error) { return holds(line, std::strerror(error)); });
}

/// GCC's driver about a program that it started, and both compilers about themselves.
bool compiler_crashed(std::string_view text) {
  return holds(text, "internal compiler error") || holds(text, "CPU time limit exceeded") ||
         holds(text, "clang frontend command failed") || holds(text, "PLEASE submit a bug report");
}

/// "error: what", as GCC, clang and the assembler begin it.
bool begins_error(std::string_view text) {
  for (const std::string_view kind : {"error: ", "fatal error: ", "Error: ", "Fatal error: ", "sorry, unimplemented: "})
    if (text.starts_with(kind)) return true;
  return false;
}

/// Splits "file:12:5: text" or "program: text" before the text.
std::pair<std::string_view, std::string_view> place_and_text(std::string_view line) {
  const std::size_t end = line.find(": ");
  if (end == std::string_view::npos) return {{}, line};
  return {line.substr(0, end), line.substr(end + 2)};
}

/// "kernels/tiled/kernel.cuh:12:5: error: what it does not like".
bool is_error_in(std::string_view line, const std::vector<std::string>& sources) {
  const auto [place, text] = place_and_text(line);
  const std::size_t colon = place.find(':');
  if (colon == std::string_view::npos || place.find_first_not_of("0123456789:", colon) != std::string_view::npos)
    return false;
  const std::string file = std::filesystem::path(place.substr(0, colon)).lexically_normal().string();
  return std::find(sources.begin(), sources.end(), file) != sources.end() && begins_error(text) &&
         !compiler_crashed(text) && !out_of_memory(text) && !refused_by_system(text);
}

bool crashed(const ProcessEnd& end, std::string_view log) {
  switch (end.kind) {
    case ProcessEnd::Kind::timed_out:
      return true;
    case ProcessEnd::Kind::signalled:
      return !ended_from_outside(end);
    case ProcessEnd::Kind::exited:
      return compiler_crashed(log) || out_of_memory(log);
    case ProcessEnd::Kind::cancelled:
    case ProcessEnd::Kind::not_started:
      return false;
  }
  return false;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

bool disturbed(const ProcessEnd& end) {
  return end.kind != ProcessEnd::Kind::exited || refused_by_system(end.errors) || out_of_memory(end.errors) ||
         holds(end.errors, "signal terminated program") || holds(end.errors, "terminated with signal");
}

Failure blame(const std::string& compiler, const ProcessEnd& end, const CompileLimits& limits, const std::string& log,
              const std::vector<std::string>& sources) {
  const std::string ending = fmt::format("{} {}", compiler, describe(end, limits));
  if (end.kind != ProcessEnd::Kind::exited)
    return {crashed(end, log) ? Outcome::crashed : Outcome::unproven, ending, log};
  const std::vector<std::string> lines = lines_of(log);
  const auto first = [&](const auto& wanted) { return std::find_if(lines.begin(), lines.end(), wanted); };
  if (const auto own = first([&](const std::string& line) { return is_error_in(line, sources); }); own != lines.end())
    return {Outcome::compile_failed, *own, log};
  if (crashed(end, log)) {
    const auto line = first([](const std::string& text) { return compiler_crashed(text) || out_of_memory(text); });
    return {Outcome::crashed, fmt::format("{}: {}", ending, *line), log};
  }
  auto line = first([](const std::string& text) { return refused_by_system(text); });
  if (line == lines.end())
    line =
        first([](const std::string& text) { return begins_error(text) || begins_error(place_and_text(text).second); });
  return {Outcome::unproven, line == lines.end() ? ending : fmt::format("{}: {}", ending, *line), log};
}

}  // namespace tuner
