// A fully static program: libreheap.a has to replace malloc within libc.a too, where there is no loader to ask for the
// next one.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "reheap/reheap.h"

namespace {

bool use_heap(int seed) {
  std::map<int, std::string> tree;
  for (int at = 0; at < 2000; ++at) tree[at * 7919 % 500] = std::string(static_cast<std::size_t>(at % 300), 's');
  char* copy = strdup("duplicated by the C library");
  char* large = static_cast<char*>(realloc(calloc(1, 3000000), 9000000));
  const bool sound = copy && large && rh_owns(copy) && rh_owns(large) && large[seed] == 0;
  free(copy);
  free(large);
  return sound && tree.size() == 500;
}

bool use_child() {
  const pid_t child = fork();
  if (child == 0) _exit(use_heap(1) ? 0 : 1);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  bool sound[4] = {};
  for (int at = 0; at < 4; ++at) threads.emplace_back([&, at] { sound[at] = use_heap(at); });
  for (std::thread& thread : threads) thread.join();
  const bool child = use_child();
  std::printf("threads %d%d%d%d, child %d\n", sound[0], sound[1], sound[2], sound[3], child);
  return sound[0] && sound[1] && sound[2] && sound[3] && child ? 0 : 1;
}
