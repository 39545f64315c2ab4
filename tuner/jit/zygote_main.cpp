// The zygote's own side (zygote.h): load NVRTC, then one child for each descriptor that arrives.

#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <new>

#include "tuner/jit/nvrtc_library.h"
#include "tuner/jit/process.h"

namespace tuner {
namespace {

constexpr unsigned long kQueryPersonality = 0xffffffff;

NvrtcReply compile_guarded(const NvrtcApi& nvrtc, const NvrtcRequest& request) {
  try {
    return compile_with_nvrtc(nvrtc, request);
  } catch (const std::bad_alloc&) {
    NvrtcReply reply;
    reply.died = true;
    reply.reason = "the compiler ran out of its memory limit";
    return reply;
  }
}

/// In a child of the zygote: the request's compile in a child of its own, whose end becomes the reply where it is the
/// compile's own.
void serve(const NvrtcApi& nvrtc, int socket) {
  const auto fields = read_message(socket);
  const auto request = fields ? request_from(*fields) : std::nullopt;
  if (!request) return;
  const ProcessEnd end = run_limited(request->limits, socket, [&](int reply) {
    write_all(reply, encode(to_fields(compile_guarded(nvrtc, *request))));
  });
  if (ended_from_outside(end)) return;  // without a reply the request is made again
  NvrtcReply reply;
  const auto answer = end.success() ? decode(end.reply) : std::nullopt;
  if (auto whole = answer ? reply_from(*answer) : std::nullopt) {
    reply = std::move(*whole);
  } else {
    reply.died = true;
    reply.reason = "the compiler " + describe(end, request->limits);
    reply.log = end.errors;
  }
  write_all(socket, encode(to_fields(reply)));
}

}  // namespace

int zygote_main(int socket) {
  const auto candidates = read_message(socket);
  if (!candidates) return 1;
  NvrtcFound found;
  found.fixed_addresses = (static_cast<unsigned long>(::personality(kQueryPersonality)) & ADDR_NO_RANDOMIZE) != 0;
  const auto nvrtc = load_nvrtc(*candidates, found);
  if (!write_all(socket, encode(to_fields(found)))) return 1;
  if (!nvrtc) return 0;

  ::signal(SIGCHLD, SIG_IGN);  // children are not waited for: what they have to say goes over their socket
  const pid_t zygote = ::getpid();
  while (const Descriptor request = receive_descriptor(socket)) {
    if (::fork() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != zygote) ::_exit(1);
    ::signal(SIGCHLD, SIG_DFL);
    ::close(socket);
    serve(*nvrtc, request.get());
    ::_exit(0);
  }
  return 0;
}

}  // namespace tuner
