#include "runner/linux/signals.h"

#include <unistd.h>

namespace runner {

Signals::Signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&wanted, number);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  file_ = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() { close(file_); }

int Signals::next() const {
  signalfd_siginfo news;
  return read(file_, &news, sizeof news) == sizeof news ? static_cast<int>(news.ssi_signo) : 0;
}

}  // namespace runner
