// Sources with their includes resolved into one text. Internal to the stage.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuner {

using EmbeddedFiles = std::vector<std::pair<std::string_view, std::string_view>>;

struct Flattened {
  std::string text;                // each file once, in the order of first inclusion, after what it includes
  std::vector<std::string> files;  // in that order
  std::set<std::string> system;    // <...> includes, to stand before any namespace
  std::set<std::string> macros;    // that the text defines
};

/// Translation units flattened together. `#pragma once` goes, and so do the parts for Host execution. Throws
/// std::logic_error for an include that `files` lacks.
Flattened flatten(const std::vector<std::string>& units, const EmbeddedFiles& files);

}  // namespace tuner
