// Version and commit of this build.
#pragma once

#include <string>

namespace tuner {

std::string tool_version();  // "0.1.0"
std::string tool_commit();   // abbreviated hash, "-dirty" when the tree had changes; "unknown" outside a checkout
std::string version_line();  // "tuner 0.1.0 (abc1234)"

}  // namespace tuner
