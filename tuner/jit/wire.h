// Descriptors and messages between the coordinator, the zygote and its children: a message is a list of byte strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuner {

/// Owning file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

using Fields = std::vector<std::string>;

/// Total length, then each field's length and bytes (64-bit, native order: both ends are one program on one machine).
std::string encode(const Fields& fields);
/// Nothing if `bytes` is not exactly one whole message.
std::optional<Fields> decode(std::string_view bytes);

/// Writes all of it, to a socket or a pipe; false if the other end is gone. Never raises SIGPIPE on a socket.
bool write_all(int fd, std::string_view bytes);
/// Reads exactly one message, allocating by its stated lengths alone: heap layout then depends on the message only,
/// which the compiler's output may depend on (zygote.cpp).
std::optional<Fields> read_message(int fd);

/// Connected pair of close-on-exec stream sockets; a pair of empty ones if the system refuses.
std::pair<Descriptor, Descriptor> socket_pair();
bool send_descriptor(int socket, int fd);
/// Empty at the end of the stream.
Descriptor receive_descriptor(int socket);

}  // namespace tuner
