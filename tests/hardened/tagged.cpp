// Blocks where memory has tags (arm64): what is wrong ends the process at the access. Each attack has a child of its
// own; exits with 77 where memory has no tags.
#include <malloc.h>
#include <reheap/reheap.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace {

using Bytes = volatile unsigned char*;

unsigned tag_of(const volatile void* pointer) { return reinterpret_cast<uintptr_t>(pointer) >> 56 & 15; }
uintptr_t place_of(const volatile void* pointer) { return reinterpret_cast<uintptr_t>(pointer) << 8 >> 8; }
Bytes make(size_t size) { return static_cast<Bytes>(malloc(size)); }
void release(Bytes block) { free(const_cast<unsigned char*>(block)); }
Bytes with_tag(Bytes block, unsigned tag) {
  return reinterpret_cast<Bytes>(place_of(block) | static_cast<uintptr_t>(tag) << 56);
}

int g_failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  printf("tagged: not so: %s\n", what);
  ++g_failures;
}

template <typename Attack> int signal_of(Attack attack) {
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(9);
    const rlimit no_core = {0, 0};  // QEMU writes one itself
    setrlimit(RLIMIT_CORE, &no_core);
    attack();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

template <typename Attack> void expect_fault(const char* what, Attack attack) {
  expect(signal_of(attack) == SIGSEGV, what);
}

void accesses(size_t size) {
  Bytes block = make(size);
  expect_fault("a read after free faults", [=] {
    release(block);
    (void)block[0];
  });
  expect_fault("a write after free faults", [=] {
    release(block);
    block[size - 1] = 1;
  });
  expect_fault("a write to the next block faults", [=] { block[size + 32] = 1; });
  expect_fault("a read before the block faults", [=] { (void)block[-1]; });
  expect_fault("so does a pointer with another tag", [=] { with_tag(block, tag_of(block) ^ 1)[0] = 1; });
  expect(signal_of([=] { release(with_tag(block, tag_of(block) ^ 1)); }) == SIGABRT, "its free is reported");
  expect(signal_of([=] { release(with_tag(block, 0)); }) == SIGABRT, "without a tag too");
  expect(signal_of([=] {
           release(block);
           for (int count = 0; count < 3000; ++count) make(size);
           release(block);
         }) == SIGABRT,
         "so is a second free, whoever has the block by now");
  for (size_t at = 0; at < size; ++at) block[at] = 1;
  release(block);
}

void neighbours(size_t size) {
  std::vector<Bytes> blocks(800);
  for (Bytes& block : blocks) block = make(size);
  std::sort(blocks.begin(), blocks.end(), [](Bytes a, Bytes b) { return place_of(a) < place_of(b); });
  size_t apart = SIZE_MAX;
  for (size_t at = 1; at < blocks.size(); ++at)
    apart = std::min(apart, place_of(blocks[at]) - place_of(blocks[at - 1]));
  for (size_t at = 1; at < blocks.size(); ++at) {
    bool beside = place_of(blocks[at]) - place_of(blocks[at - 1]) == apart;
    expect(!beside || tag_of(blocks[at]) != tag_of(blocks[at - 1]), "neighbours differ");
  }
  // Of a slab that is empty the memory may go, and with it what is known of it: half of the blocks stay.
  for (size_t at = 0; at < blocks.size(); at += 2) release(blocks[at]);
  size_t again = 0;
  for (int count = 0; count < 600; ++count) {
    Bytes block = make(size);
    for (Bytes before : blocks) {
      if (place_of(before) != place_of(block)) continue;
      ++again;
      expect(tag_of(before) != tag_of(block), "the next user's tag is another");
    }
  }
  expect(again != 0, "memory is used again");
}

void resizing() {
  Bytes block = make(200);
  for (int at = 0; at < 200; ++at) block[at] = static_cast<unsigned char>(at);
  Bytes shorter = static_cast<Bytes>(realloc(const_cast<unsigned char*>(block), 130));
  expect(shorter[129] == 129, "what is left stays");
  if (place_of(shorter) == place_of(block)) expect_fault("what was cut off is gone", [=] { (void)shorter[160]; });
  Bytes longer = static_cast<Bytes>(realloc(const_cast<unsigned char*>(shorter), 5000));
  longer[4999] = 1;
  expect(longer[129] == 129, "also as it grows");
  release(longer);
}

void heaps() {
  rh_heap* heap = rh_heap_create();
  for (int round = 0; round < 3; ++round) {
    for (int count = 0; count < 300; ++count) memset(rh_heap_malloc(heap, 100), 1, 100);
    rh_heap_reset(heap);
  }
  rh_heap_destroy(heap);
  for (int count = 0; count < 2000; ++count) memset(malloc(100), 1, 100);
}

void threads() {
  std::vector<std::thread> running;
  for (int index = 0; index < 3; ++index)
    running.emplace_back([] {
      for (int round = 0; round < 3000; ++round) release(make(static_cast<size_t>(round % 700 + 1)));
      Bytes block = make(40);
      expect(tag_of(block) != 0, "threads have tags too");
      std::thread([block] { release(block); }).join();
    });
  for (std::thread& thread : running) thread.join();
}

}  // namespace

int main() {
  if (tag_of(make(40)) == 0) return 77;
  for (size_t size : {1, 16, 24, 40, 120, 1000, 3000, 20000}) accesses(size);
  for (size_t size : {8, 24, 100, 3000}) neighbours(size);
  resizing();
  heaps();
  threads();
  expect(tag_of(make(100000)) == 0, "large blocks have none");
  expect(signal_of([] { release(make(40)); }) == 0, "a forked child goes on");
  return g_failures != 0;
}
