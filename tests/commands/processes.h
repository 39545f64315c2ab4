// Other processes as /proc shows them: the helpers that a run of tuner starts.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/core/temporary_folder.h"

namespace tuner {

struct ProcessFacts {
  pid_t parent = 0;
  char state = 'Z';
  double cpu_seconds = 0;
};

/// Nothing once it is gone.
inline std::optional<ProcessFacts> facts_of(pid_t process) {
  const std::string text = TemporaryFolder::content_of("/proc/" + std::to_string(process) + "/stat");
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessFacts facts;
  std::string skipped;
  fields >> facts.state >> facts.parent;
  for (int i = 0; i < 9; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  facts.cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return facts;
}

/// True for a living process (no zombie) of the kind "__worker" or "__zygote"; "__" is both.
inline bool is_helper(pid_t process, const std::string& kind) {
  const auto facts = facts_of(process);
  if (!facts || facts->state == 'Z') return false;
  const std::string line = TemporaryFolder::content_of("/proc/" + std::to_string(process) + "/cmdline");
  return line.find(std::string(1, '\0') + kind) != std::string::npos;
}

/// Living helpers below `ancestor`, at any depth.
inline std::vector<pid_t> helpers_of(pid_t ancestor, const std::string& kind = "__") {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) continue;
    const auto process = static_cast<pid_t>(std::stol(name));
    auto facts = facts_of(process);
    while (facts && facts->parent > 1 && facts->parent != ancestor) facts = facts_of(facts->parent);
    if (facts && facts->parent == ancestor && is_helper(process, kind)) found.push_back(process);
  }
  return found;
}

inline std::vector<pid_t> still_living(std::vector<pid_t> helpers) {
  std::erase_if(helpers, [](pid_t helper) { return !is_helper(helper, "__"); });
  return helpers;
}

}  // namespace tuner
