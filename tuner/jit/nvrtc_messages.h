// What the coordinator and the zygote tell each other, as lists of byte strings (wire.h).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner/jit/includes.h"
#include "tuner/jit/jit.h"
#include "tuner/jit/wire.h"

namespace tuner {

/// Answer of the zygote to the list of libraries to try: the one that it loaded, or why it has none.
struct NvrtcFound {
  std::string path;         // empty: none
  std::string tried;        // what was looked for, and what the loader said, one a line
  std::string version;      // "13.0"
  std::string fingerprint;  // of the library file
  std::string archs;        // "75 80 86", as the library states them
  bool fixed_addresses = false;
};

struct NvrtcRequest {
  CompileLimits limits;
  CompileUnit unit;  // options: all of them
  Headers headers;
  bool want_ptx = false;  // in place of the cubin
};

struct NvrtcReply {
  bool ok = false;
  bool died = false;   // where not ok: the compiler did not live to refuse the unit, or had no memory left
  std::string reason;  // where not ok
  std::string log;
  std::string code;  // cubin or PTX
  double compile_ms = 0;
  std::vector<std::string> lowered_names;  // in the order of the unit's kernels
};

Fields to_fields(const NvrtcFound& found);
Fields to_fields(const NvrtcRequest& request);
Fields to_fields(const NvrtcReply& reply);
/// Nothing if the fields are not such a message.
std::optional<NvrtcFound> found_from(const Fields& fields);
std::optional<NvrtcRequest> request_from(const Fields& fields);
std::optional<NvrtcReply> reply_from(const Fields& fields);

}  // namespace tuner
