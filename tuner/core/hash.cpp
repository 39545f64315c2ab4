#include "tuner/core/hash.h"

#include <mbedtls/sha256.h>
#include <mbedtls/version.h>

#include <array>
#include <stdexcept>

namespace tuner {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
#if MBEDTLS_VERSION_NUMBER < 0x03000000
  const int status = mbedtls_sha256_ret(data, bytes.size(), digest.data(), 0);
#else
  const int status = mbedtls_sha256(data, bytes.size(), digest.data(), 0);
#endif
  if (status != 0) throw std::runtime_error("mbedtls_sha256 failed with status " + std::to_string(status));
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace tuner
