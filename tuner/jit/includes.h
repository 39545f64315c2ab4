// Which files of kernels/ a source needs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tuner/family/program.h"

namespace tuner {

/// Path from the repository root -> content, in path order.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// Content of an available file; empty if there is none of that path.
using HeaderLookup = std::function<std::string_view(std::string_view)>;

/// Every available file that `source` includes, directly or not. Conditions are not evaluated, so it may hold more than
/// one compile needs; a file that is not available is left out, for the compiler to name.
Headers included_files(std::string_view source, const HeaderLookup& lookup);
/// Same, over embedded_source.
Headers included_files(std::string_view source);

/// compile_key (cache.h) over headers given.
std::string compile_key(const CompileUnit& unit, const Headers& headers, std::string_view arch,
                        std::string_view compiler_identity, std::string_view extra);

}  // namespace tuner
