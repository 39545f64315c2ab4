#include "tuner/commands/interrupt.h"

#include <csignal>

namespace tuner {
namespace {

volatile std::sig_atomic_t noted = 0;

void note(int signal) {
  if (noted != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  noted = signal;
}

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);  // without SA_RESTART: a wait for the worker ends with EINTR
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() { install(note); }
InterruptGuard::~InterruptGuard() { install(SIG_DFL); }

int interrupt_signal() { return noted; }

}  // namespace tuner
