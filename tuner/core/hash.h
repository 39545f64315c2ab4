// SHA-256 as lowercase hex.
#pragma once

#include <string>
#include <string_view>

namespace tuner {

std::string sha256(std::string_view bytes);

}  // namespace tuner
