// Framed JSON messages over a socket: 8 bytes of length, then the text. Both ends are this program.
#pragma once

#include <optional>
#include <string>

#include "tuner/core/json.h"

namespace tuner {

enum class Received { message, closed, timed_out, interrupted };

/// Sends whole; false when the peer is gone.
bool send_message(int socket, const Json& message);
/// Waits up to `seconds` (negative: for ever). `interrupted` is asked whenever a signal ends the wait.
Received receive_message(int socket, Json& message, double seconds, bool (*interrupted)() = nullptr);

}  // namespace tuner
