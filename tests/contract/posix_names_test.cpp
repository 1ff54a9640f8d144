// The names that POSIX and the C library add to C's.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "requests.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

TEST(Errno, PosixMemalignReturnsEnomem) {
  for (const std::size_t size : impossible) {
    void* block = &block;
    EXPECT_EQ(posix_memalign(&block, 64, opaque(size)), ENOMEM) << size;
    EXPECT_EQ(block, &block) << "the pointer is not written on failure";
  }
}

TEST(Errno, PosixMemalignReturnsEinvalAndLeavesErrno) {
  const std::size_t bad[] = {0,  1,    2,    3,     sizeof(void*) - 1, sizeof(void*) + 1, 3 * sizeof(void*), 24,
                             48, 4095, 4097, kMost, kMost / 2};
  for (const std::size_t alignment : bad) {
    void* block = &block;
    errno = kUntouched;
    EXPECT_EQ(posix_memalign(&block, opaque(alignment), 100), EINVAL) << alignment;
    EXPECT_EQ(errno, kUntouched) << alignment;
    EXPECT_EQ(block, &block) << alignment;
  }
}

// Today's C library refuses such an alignment, an older one rounded it up: both are right, a less aligned block is not.
TEST(Errno, OddAlignmentIsRefusedOrRoundedUp) {
  for (const std::size_t alignment : {3, 24, 48, 100, 4097}) {
    errno = kUntouched;
    void* block = aligned_alloc(opaque(alignment), 1000);
    if (block) {
      std::size_t rounded = 1;
      while (rounded < alignment) rounded *= 2;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % rounded, 0u) << alignment;
      free(block);
    } else {
      EXPECT_EQ(errno, EINVAL) << alignment;
    }
  }
}

TEST(Alignment, PageFunctions) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const std::size_t size : interesting_sizes(2 * MiB, 20)) {
    void* const whole = valloc(size);
    void* const rounded = pvalloc(size);
    ASSERT_NE(whole, nullptr) << size;
    ASSERT_NE(rounded, nullptr) << size;
    EXPECT_TRUE(aligned(whole, page)) << size;
    EXPECT_TRUE(aligned(rounded, page)) << size;
    EXPECT_GE(malloc_usable_size(whole), size);
    const std::size_t pages = (size + page - 1) / page * page;
    EXPECT_GE(malloc_usable_size(rounded), pages) << "pvalloc(" << size << ") rounds up to pages";
    fill(rounded, pages, 3);
    EXPECT_TRUE(intact(rounded, pages, 3));
    free(whole);
    free(rounded);
  }
}

TEST(Overflow, PageRounding) {
  for (std::size_t short_of = 0; short_of < 3 * 4096; short_of += short_of < 20 ? 1 : 509) {
    errno = 0;
    EXPECT_EQ(pvalloc(opaque(kMost - short_of)), nullptr) << short_of;
    EXPECT_EQ(errno, ENOMEM) << short_of;
    errno = 0;
    EXPECT_EQ(valloc(opaque(kMost - short_of)), nullptr) << short_of;
    EXPECT_EQ(errno, ENOMEM) << short_of;
  }
}

bool sleeps(int thread) {
  std::FILE* file = std::fopen(("/proc/self/task/" + std::to_string(thread) + "/stat").c_str(), "r");
  char state = 0;
  const bool read = file != nullptr && std::fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
  if (file != nullptr) std::fclose(file);
  return read && state == 'S';
}

// Writes into a pipe with room for little of it, and is cancelled there.
template <class Write> std::string written_when_cancelled(Write write_it) {
  static Write* writer;
  static int ends[2];
  static std::atomic<int> writing;
  writer = &write_it;
  writing = 0;
  EXPECT_EQ(pipe(ends), 0);
  EXPECT_EQ(fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
  const std::string filler(4096 - 10, '.');
  EXPECT_EQ(write(ends[1], filler.data(), filler.size()), static_cast<ssize_t>(filler.size()));
  pthread_t thread;
  EXPECT_EQ(pthread_create(
                &thread, nullptr,
                [](void*) -> void* {
                  writing = static_cast<int>(syscall(SYS_gettid));
                  (*writer)(ends[1]);
                  return nullptr;
                },
                nullptr),
            0);
  for (int tries = 0; tries < 5000 && !(writing != 0 && sleeps(writing)); ++tries) nap(0.001);
  pthread_cancel(thread);
  std::string text;
  char piece[4096];
  for (bool ended = false;;) {
    int more = 0;
    ended = ended || pthread_tryjoin_np(thread, nullptr) == 0;
    if (ioctl(ends[0], FIONREAD, &more) == 0 && more > 0)
      text.append(piece, static_cast<std::size_t>(read(ends[0], piece, sizeof piece)));
    else if (ended)
      break;
    else
      nap(0.001);
  }
  close(ends[0]);
  close(ends[1]);
  return text.substr(filler.size());
}

TEST(Info, OfAThreadThatIsCancelledIsWhole) {
  if (!on_reheap()) GTEST_SKIP() << "glibc's is cut off";
  const std::string text = written_when_cancelled([](int to) {
    FILE* stream = fdopen(dup(to), "w");
    setvbuf(stream, nullptr, _IONBF, 0);
    malloc_info(0, stream);
  });
  EXPECT_NE(text.find("</malloc>"), std::string::npos) << text;
}

SCENARIO(stats_when_cancelled) {
  const std::string text = written_when_cancelled([](int to) {
    dup2(to, 2);
    int before = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    malloc_stats();
    pthread_setcanceltype(before, nullptr);
  });
  NEED(text.back() == '\n' && text[text.size() - 2] == '}');
  return 0;
}

TEST(Stats, OfAThreadThatIsCancelledAreWhole) {
  if (!on_reheap()) GTEST_SKIP() << "glibc's are cut off";
  EXPECT_SCENARIO("stats_when_cancelled");
}

}  // namespace
