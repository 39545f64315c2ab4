#include "tuner/emit/flatten.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace tuner {
namespace {

constexpr std::string_view kHostMacro = "CT1D_HOST_EXECUTION";

std::string_view trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

/// Follows #if ... #endif, of which those that ask for Host execution alone are resolved.
class Conditions {
 public:
  /// True when the line is to be kept.
  bool keep(std::string_view line) {
    if (starts_with(line, "#if")) {
      levels_.push_back(open(line));
      return levels_.back().kind == Kind::other && visible(levels_.size() - 1);
    }
    if (levels_.empty()) return true;
    Level& level = levels_.back();
    if (starts_with(line, "#el") && level.kind == Kind::host) {
      if (!starts_with(line, "#else")) throw std::logic_error("#elif after a condition on Host execution");
      level.shown = !level.shown;
      return false;
    }
    const bool shown = visible(levels_.size());
    if (!starts_with(line, "#endif")) return shown;
    const bool mine = level.kind == Kind::other;
    levels_.pop_back();
    return mine && visible(levels_.size());
  }

 private:
  enum class Kind { host, other };
  struct Level {
    Kind kind;
    bool shown;
  };

  static Level open(std::string_view line) {
    if (line.find(kHostMacro) == std::string_view::npos) return {Kind::other, true};
    const bool negated = line.find('!') != std::string_view::npos || starts_with(line, "#ifndef");
    if (line.find("&&") != std::string_view::npos || line.find("||") != std::string_view::npos)
      return {Kind::other, true};
    return {Kind::host, negated};
  }
  bool visible(std::size_t depth) const {
    return std::all_of(levels_.begin(), levels_.begin() + static_cast<std::ptrdiff_t>(depth),
                       [](const Level& l) { return l.shown; });
  }

  std::vector<Level> levels_;
};

class Flattener {
 public:
  explicit Flattener(const EmbeddedFiles& files) : files_(files) {}

  void add(std::string_view content) {
    Conditions conditions;
    while (!content.empty()) {
      const std::size_t end = std::min(content.find('\n'), content.size());
      const std::string_view line = content.substr(0, end);
      content.remove_prefix(std::min(end + 1, content.size()));
      const std::string_view text = trimmed(line);
      if (conditions.keep(text)) add_line(line, text);
    }
  }

  Flattened take() { return std::move(result_); }

 private:
  void add_line(std::string_view line, std::string_view text) {
    if (text == "#pragma once") return;
    if (starts_with(text, "#include <")) {
      result_.system.insert(std::string(text));
    } else if (starts_with(text, "#include \"")) {
      include(std::string(text.substr(10, text.find('"', 10) - 10)));
    } else {
      if (starts_with(text, "#define ")) {
        const std::string_view rest = trimmed(text.substr(8));
        result_.macros.emplace(rest.substr(0, rest.find_first_of(" (\t")));
      }
      // Runs of empty lines, left behind by what went, become one.
      if (text.empty() &&
          (result_.text.empty() || (result_.text.size() > 1 && result_.text[result_.text.size() - 2] == '\n')))
        return;
      result_.text.append(line).push_back('\n');
    }
  }

  void include(const std::string& path) {
    if (std::find(result_.files.begin(), result_.files.end(), path) != result_.files.end()) return;
    const auto file = std::find_if(files_.begin(), files_.end(), [&](const auto& f) { return f.first == path; });
    if (file == files_.end()) throw std::logic_error(fmt::format("the program does not carry {}", path));
    result_.files.push_back(path);
    add(file->second);
  }

  const EmbeddedFiles& files_;
  Flattened result_;
};

}  // namespace

Flattened flatten(const std::vector<std::string>& units, const EmbeddedFiles& files) {
  Flattener flattener(files);
  for (std::size_t i = 0; i < units.size(); ++i)
    if (std::find(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(i), units[i]) ==
        units.begin() + static_cast<std::ptrdiff_t>(i))
      flattener.add(units[i]);
  return flattener.take();
}

}  // namespace tuner
