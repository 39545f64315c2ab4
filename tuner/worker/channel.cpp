#include "tuner/worker/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAskMs = 500;

bool send_all(int socket, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

Received receive_all(int socket, char* data, std::size_t size, std::optional<Clock::time_point> deadline,
                     const GivesUp& gives_up) {
  while (size > 0) {
    int wait_ms = gives_up ? kAskMs : -1;
    if (deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      if (left <= 0) return Received::timed_out;
      wait_ms = static_cast<int>(std::min<long long>(left + 1, gives_up ? kAskMs : 1'000'000));
    }
    pollfd entry{socket, POLLIN, 0};
    const int ready = poll(&entry, 1, wait_ms);
    if (gives_up)
      if (const auto end = gives_up()) return *end;
    if (ready < 0 && errno != EINTR) return Received::closed;
    if (ready <= 0) continue;
    const ssize_t got = recv(socket, data, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Received::closed;
    data += got;
    size -= static_cast<std::size_t>(got);
  }
  return Received::message;
}

}  // namespace

bool send_message(int socket, const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::uint64_t size = text.size();
  char header[sizeof size];
  std::memcpy(header, &size, sizeof size);
  return send_all(socket, header, sizeof header) && send_all(socket, text.data(), text.size());
}

Received receive_message(int socket, Json& message, double seconds, const GivesUp& gives_up) {
  std::optional<Clock::time_point> deadline;
  if (seconds >= 0)
    deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::uint64_t size = 0;
  char header[sizeof size];
  if (const Received end = receive_all(socket, header, sizeof header, deadline, gives_up); end != Received::message)
    return end;
  std::memcpy(&size, header, sizeof size);
  if (size > (std::uint64_t{1} << 33)) return Received::closed;  // no message of this program is that long
  std::string text(size, '\0');
  if (const Received end = receive_all(socket, text.data(), size, deadline, gives_up); end != Received::message)
    return end;
  message = Json::parse(text, nullptr, false);
  return message.is_discarded() ? Received::closed : Received::message;
}

}  // namespace tuner
