// Problems, values and device facts in JSON, as configs, cases, profiles and results share them.
#pragma once

#include <string>

#include "tuner/core/device_facts.h"
#include "tuner/core/json_node.h"
#include "tuner/core/problem.h"
#include "tuner/core/value.h"

namespace tuner {

/// A label for people: 1 to 200 bytes without control characters.
std::string read_label(const Node& node);
/// A label that may name a folder: also no '/' or '\', and neither "." nor "..".
std::string read_file_name(const Node& node);

/// A compiler target: "sm_90a".
bool is_target(std::string_view arch);

/// A legal problem; keys not given take their defaults. With `named`, the key "name" may stand among the others.
Problem read_problem(const Node& node, bool named = false);
Json problem_json(const Problem& problem);

/// Whole number (0 to 2^31 - 1), [x, y] (1 to 1024 each), or a non-empty name.
Value read_value(const Node& node);
Json value_json(const Value& value);

/// One list of the facts drives reading and writing; `visitor(key, member)`.
template <class Facts, class Visitor>
void visit_facts(Facts& facts, Visitor&& visitor) {
  visitor("name", facts.name);
  visitor("arch", facts.arch);
  visitor("compute_major", facts.compute_major);
  visitor("compute_minor", facts.compute_minor);
  visitor("sm_count", facts.sm_count);
  visitor("max_threads_per_block", facts.max_threads_per_block);
  visitor("max_threads_per_sm", facts.max_threads_per_sm);
  visitor("max_blocks_per_sm", facts.max_blocks_per_sm);
  visitor("registers_per_sm", facts.registers_per_sm);
  visitor("max_registers_per_thread", facts.max_registers_per_thread);
  visitor("shared_per_sm", facts.shared_per_sm);
  visitor("shared_per_block_optin", facts.shared_per_block_optin);
  visitor("shared_reserved_per_block", facts.shared_reserved_per_block);
  visitor("l2_bytes", facts.l2_bytes);
  visitor("memory_bytes", facts.memory_bytes);
  visitor("sm_clock_mhz", facts.sm_clock_mhz);
  visitor("memory_gbps", facts.memory_gbps);
  visitor("fp32_tflops", facts.fp32_tflops);
  visitor("tf32_tflops", facts.tf32_tflops);
  visitor("fp16_tflops", facts.fp16_tflops);
}

}  // namespace tuner
