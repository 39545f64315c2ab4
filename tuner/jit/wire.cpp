#include "tuner/jit/wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace tuner {
namespace {

constexpr std::uint64_t kLongestMessage = std::uint64_t{1} << 31;

void append_number(std::string& text, std::uint64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  text.append(bytes, sizeof number);
}

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

std::optional<Fields> decode_body(std::string_view body) {
  Fields fields;
  std::size_t at = 0;
  while (at < body.size()) {
    if (body.size() - at < sizeof(std::uint64_t)) return std::nullopt;
    const std::uint64_t length = number_at(body, at);
    at += sizeof length;
    if (length > body.size() - at) return std::nullopt;
    fields.emplace_back(body.substr(at, length));
    at += length;
  }
  return fields;
}

bool read_exactly(int fd, char* target, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(fd, target, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    target += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Descriptor::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::string encode(const Fields& fields) {
  std::uint64_t size = 0;
  for (const std::string& field : fields) size += sizeof(std::uint64_t) + field.size();
  std::string text;
  text.reserve(sizeof size + size);
  append_number(text, size);
  for (const std::string& field : fields) {
    append_number(text, field.size());
    text += field;
  }
  return text;
}

std::optional<Fields> decode(std::string_view bytes) {
  if (bytes.size() < sizeof(std::uint64_t) || number_at(bytes, 0) != bytes.size() - sizeof(std::uint64_t))
    return std::nullopt;
  return decode_body(bytes.substr(sizeof(std::uint64_t)));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == ENOTSOCK) written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::optional<Fields> read_message(int fd) {
  char head[sizeof(std::uint64_t)];
  if (!read_exactly(fd, head, sizeof head)) return std::nullopt;
  const std::uint64_t size = number_at({head, sizeof head}, 0);
  if (size > kLongestMessage) return std::nullopt;
  std::string body(size, '\0');
  if (!read_exactly(fd, body.data(), body.size())) return std::nullopt;
  return decode_body(body);
}

std::pair<Descriptor, Descriptor> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

bool send_descriptor(int socket, int fd) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == 1;
}

Descriptor receive_descriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  int fd = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  const cmsghdr* header = got == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return {};
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return Descriptor(fd);
}

}  // namespace tuner
