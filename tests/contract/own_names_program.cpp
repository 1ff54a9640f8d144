// A program that defines functions whose names the library interposes: it links, and calls its own.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

static int calls = 0;

extern "C" ssize_t read(int, void*, size_t) { return ++calls; }
extern "C" int poll(pollfd*, nfds_t, int) { return ++calls; }
extern "C" pid_t waitpid(pid_t, int*, int) { return ++calls; }
extern "C" int pause() { return ++calls; }

int main() {
  for (int round = 0; round < 100; ++round) free(malloc(100000));
  read(0, nullptr, 0);
  poll(nullptr, 0, 0);
  waitpid(-1, nullptr, 0);
  pause();
  return calls == 4 ? 0 : 1;
}
