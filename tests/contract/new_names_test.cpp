// Every form of operator new and delete, by the name that libraries find it under.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <new>
#include <string>

#include "support/library.h"
#include "support/process.h"

using namespace contract;

namespace {

// The forms with the mangled suffix of their parameters; size_t is `m` in 64-bit programs, `j` in 32-bit ones, and
// written as `m` here.
const char* const symbols[] = {
    "_Znwm",                // new(size)
    "_Znam",                // new[](size)
    "_ZnwmRKSt9nothrow_t",  // nothrow
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",  // aligned
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",  // delete(block)
    "_ZdaPv",
    "_ZdlPvm",  // sized
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",  // nothrow
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",  // aligned
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};

std::string for_this_width(std::string symbol) {
  const std::size_t at = symbol.find('m');
  if (narrow && at != std::string::npos && at <= 6) symbol[at] = 'j';
  return symbol;
}

TEST(New, EveryNameIsServedByTheLibrary) {
  if (!on_reheap()) GTEST_SKIP() << "they are libstdc++'s there";
  for (const char* symbol : symbols) {
    const std::string name = for_this_width(symbol);
    EXPECT_EQ(server_of(find_name(name.c_str())), expected_server()) << name;
  }
}

// Common practice of C++ programs on POSIX.
TEST(New, AlignedBlocksMayBeFreedByFree) {
  for (const std::size_t size : {1, 100, 5000, 300000}) {
    free(opaque(::operator new(size, std::align_val_t{512})));
    ::operator delete(opaque(aligned_alloc(512, size)), std::align_val_t{512});
  }
}

}  // namespace
