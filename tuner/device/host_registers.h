// A fibre's memory that stands for registers of its thread: the kernel's arrays that matrix products name.
#pragma once

#include <cstdint>

namespace tuner {

// The sanitizer may have closed what is out of scope on a stack: no memcpy, which it intercepts, and no checks.
#define TUNER_UNWATCHED __attribute__((no_sanitize("address")))

TUNER_UNWATCHED inline std::uint32_t peek(const volatile std::uint32_t* place) { return *place; }
TUNER_UNWATCHED inline void poke(volatile std::uint32_t* place, std::uint32_t value) { *place = value; }

#undef TUNER_UNWATCHED

}  // namespace tuner
