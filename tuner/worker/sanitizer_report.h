// One line each out of what sanitizers and the driver print about a process's end.
#pragma once

#include <string>

namespace tuner {

/// AddressSanitizer's "SUMMARY: " line, without that word; empty if there is none.
std::string address_sanitizer_summary(const std::string& printed);
/// The driver's line about a device assertion: "file:12: kernel: block: [0,0,0], thread: [0,0,0] Assertion `x` failed."
std::string assertion_line(const std::string& printed);
/// The first error in compute-sanitizer's memcheck output, its lines joined: "Invalid __global__ write of size 4 bytes
/// at kernel+0x70 in file.cuh:31, by thread (0,0,0) in block (0,0,0), Address 0x8 is out of bounds". Empty if there is
/// none.
std::string memcheck_finding(const std::string& printed);

}  // namespace tuner
