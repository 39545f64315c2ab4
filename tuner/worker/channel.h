// Framed JSON messages over a socket: 8 bytes of length, then the text. Both ends are this program.
#pragma once

#include <functional>
#include <optional>

#include "tuner/core/json.h"

namespace tuner {

enum class Received { message, closed, timed_out, interrupted, stopped };

/// Sends whole; false when the peer is gone.
bool send_message(int socket, const Json& message);
/// Waits up to `seconds` (negative: for ever). `gives_up` is asked twice a second and whenever a signal ends the wait;
/// what it answers ends it.
using GivesUp = std::function<std::optional<Received>()>;
Received receive_message(int socket, Json& message, double seconds, const GivesUp& gives_up = {});

}  // namespace tuner
