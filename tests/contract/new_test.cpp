// Every form of operator new and delete.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

#include "support/library.h"
#include "support/names.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

using std::align_val_t;
using std::nothrow;
using std::size_t;

struct New {
  const char* form;
  bool aligned;
  bool array;
  bool throws;
  void* (*make)(size_t size, align_val_t alignment);
};

const New news[] = {
    {"new", false, false, true, [](size_t size, align_val_t) { return ::operator new(size); }},
    {"new[]", false, true, true, [](size_t size, align_val_t) { return ::operator new[](size); }},
    {"new nothrow", false, false, false, [](size_t size, align_val_t) { return ::operator new(size, nothrow); }},
    {"new[] nothrow", false, true, false, [](size_t size, align_val_t) { return ::operator new[](size, nothrow); }},
    {"new aligned", true, false, true,
     [](size_t size, align_val_t alignment) { return ::operator new(size, alignment); }},
    {"new[] aligned", true, true, true,
     [](size_t size, align_val_t alignment) { return ::operator new[](size, alignment); }},
    {"new aligned nothrow", true, false, false,
     [](size_t size, align_val_t alignment) { return ::operator new(size, alignment, nothrow); }},
    {"new[] aligned nothrow", true, true, false,
     [](size_t size, align_val_t alignment) { return ::operator new[](size, alignment, nothrow); }},
};

struct Delete {
  const char* form;
  bool aligned;
  bool array;
  void (*drop)(void* block, size_t size, align_val_t alignment);
};

const Delete deletes[] = {
    {"delete", false, false, [](void* block, size_t, align_val_t) { ::operator delete(block); }},
    {"delete[]", false, true, [](void* block, size_t, align_val_t) { ::operator delete[](block); }},
    {"delete sized", false, false, [](void* block, size_t size, align_val_t) { ::operator delete(block, size); }},
    {"delete[] sized", false, true, [](void* block, size_t size, align_val_t) { ::operator delete[](block, size); }},
    {"delete nothrow", false, false, [](void* block, size_t, align_val_t) { ::operator delete(block, nothrow); }},
    {"delete[] nothrow", false, true, [](void* block, size_t, align_val_t) { ::operator delete[](block, nothrow); }},
    {"delete aligned", true, false,
     [](void* block, size_t, align_val_t alignment) { ::operator delete(block, alignment); }},
    {"delete[] aligned", true, true,
     [](void* block, size_t, align_val_t alignment) { ::operator delete[](block, alignment); }},
    {"delete sized aligned", true, false,
     [](void* block, size_t size, align_val_t alignment) { ::operator delete(block, size, alignment); }},
    {"delete[] sized aligned", true, true,
     [](void* block, size_t size, align_val_t alignment) { ::operator delete[](block, size, alignment); }},
    {"delete aligned nothrow", true, false,
     [](void* block, size_t, align_val_t alignment) { ::operator delete(block, alignment, nothrow); }},
    {"delete[] aligned nothrow", true, true,
     [](void* block, size_t, align_val_t alignment) { ::operator delete[](block, alignment, nothrow); }},
};

std::vector<size_t> alignments_for(const New& form) {
  if (!form.aligned) return {__STDCPP_DEFAULT_NEW_ALIGNMENT__};
  return {1, 8, 16, 32, 64, 128, 1024, 4096, 65536, MiB};
}

// As in libstdc++.
TEST(New, AlignmentsThatAreNoPowersOfTwoAreRefused) {
  for (const size_t alignment : {0, 3, 12, 24, 48, 100, 4097}) {
    const align_val_t odd{opaque(alignment)};
    EXPECT_THROW(::operator delete(::operator new(10, odd), odd), std::bad_alloc) << alignment;
    EXPECT_THROW(::operator delete[](::operator new[](10, odd), odd), std::bad_alloc) << alignment;
    EXPECT_EQ(::operator new(10, odd, nothrow), nullptr) << alignment;
    EXPECT_EQ(::operator new[](10, odd, nothrow), nullptr) << alignment;
  }
}

TEST(New, EveryFormIsServedByTheLibrary) {
  if (!on_reheap()) GTEST_SKIP() << "they are the C++ library's there";
  for (const New& form : news) {
    void* block = opaque(form.make(1000, align_val_t{64}));
    EXPECT_TRUE(CONTRACT_FIND(rh_owns)(block)) << form.form;
    const Delete& matching = deletes[(form.aligned ? 6 : 0) + (form.array ? 1 : 0)];
    matching.drop(block, 1000, align_val_t{64});
  }
}

TEST(New, EveryFormWithEveryDelete) {
  for (const New& made : news) {
    for (const Delete& dropped : deletes) {
      if (made.aligned != dropped.aligned || made.array != dropped.array) continue;
      for (const size_t alignment : alignments_for(made)) {
        for (const size_t size : {0, 1, 16, 33, 500, 4096, 33000, 300000}) {
          void* block = opaque(made.make(size, align_val_t{alignment}));
          ASSERT_NE(block, nullptr) << made.form;
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u)
              << made.form << ' ' << size << " at " << alignment;
          fill(block, size, alignment);
          EXPECT_TRUE(intact(block, size, alignment));
          dropped.drop(block, size, align_val_t{alignment});
        }
      }
    }
  }
}

TEST(New, DeleteOfNullDoesNothing) {
  for (const Delete& form : deletes) form.drop(opaque<void*>(nullptr), 0, align_val_t{64});
}

// A delete that leaks the block would show as growth: 40 MB pass through each form.
TEST(New, EveryDeleteFrees) {
  for (const Delete& dropped : deletes) {
    const New& made = news[(dropped.aligned ? 4 : 0) + (dropped.array ? 1 : 0)];
    const size_t before = resident();
    for (int round = 0; round < 2000; ++round) {
      auto* block = static_cast<char*>(opaque(made.make(20000, align_val_t{128})));
      for (size_t at = 0; at < 20000; at += 4096) block[at] = 1;
      dropped.drop(block, 20000, align_val_t{128});
    }
    EXPECT_LT(resident(), before + 10 * MiB) << dropped.form;
  }
}

constexpr size_t kImpossible = narrow ? SIZE_MAX / 8 * 7 : SIZE_MAX / 2 - 4096;

TEST(New, FailureThrowsOrGivesNull) {
  for (const New& form : news) {
    for (const size_t alignment : alignments_for(form)) {
      for (const size_t size : {kImpossible, kImpossible + 8192, SIZE_MAX - 8, SIZE_MAX}) {
        // libstdc++ 12 rounds the size up to the alignment, some C libraries add a pointer: past the end.
        if (!on_reheap() && form.aligned && size > SIZE_MAX - alignment - 4 * sizeof(void*)) continue;
        bool thrown = false;
        void* block = &block;
        try {
          block = opaque(form.make(opaque(size), align_val_t{alignment}));
        } catch (const std::bad_alloc&) {
          thrown = true;
        }
        EXPECT_EQ(thrown, form.throws) << form.form << ' ' << size << " at " << alignment;
        if (!form.throws) EXPECT_EQ(block, nullptr) << form.form;
      }
    }
  }
}

// ---- new-handler -------------------------------------------------------------------------------

int calls = 0;

class HandlerScope {
 public:
  explicit HandlerScope(std::new_handler handler) : old_(std::set_new_handler(handler)) { calls = 0; }
  ~HandlerScope() { std::set_new_handler(old_); }

 private:
  std::new_handler old_;
};

struct Abandoned {};

void expect_given_up(const New& form, int handler_calls) {
  bool thrown = false;
  void* block = nullptr;
  try {
    block = opaque(form.make(opaque(kImpossible), align_val_t{64}));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  EXPECT_EQ(block, nullptr) << form.form;
  EXPECT_EQ(thrown, form.throws) << form.form;
  EXPECT_EQ(calls, handler_calls) << form.form;
}

TEST(New, HandlerIsCalledUntilItGivesUp) {
  for (const New& form : news) {
    const HandlerScope scope([] {
      if (++calls == 5) std::set_new_handler(nullptr);
    });
    expect_given_up(form, 5);
  }
}

TEST(New, BadAllocOfTheHandlerPassesOrGivesNull) {
  for (const New& form : news) {
    const HandlerScope scope([] {
      if (++calls == 3) throw std::bad_alloc();
    });
    expect_given_up(form, 3);
  }
}

// Anything a handler throws passes through the throwing forms, and the frames between are unwound.
TEST(New, AnyExceptionOfTheHandlerPasses) {
  for (const New& form : news) {
    if (!form.throws) continue;
    const HandlerScope scope([] {
      ++calls;
      throw Abandoned();
    });
    EXPECT_THROW(opaque(form.make(opaque(kImpossible), align_val_t{64})), Abandoned) << form.form;
    EXPECT_EQ(calls, 1) << form.form;
  }
}

TEST(New, SuccessCallsNoHandler) {
  const HandlerScope scope([] { ++calls; });
  for (const New& form : news) {
    void* block = opaque(form.make(1000, align_val_t{64}));
    const Delete& matching = deletes[(form.aligned ? 6 : 0) + (form.array ? 1 : 0)];
    matching.drop(block, 1000, align_val_t{64});
  }
  EXPECT_EQ(calls, 0);
}

TEST(New, MallocCallsNoHandler) {
  const HandlerScope scope([] { ++calls; });
  EXPECT_EQ(malloc(opaque(kImpossible)), nullptr);
  EXPECT_EQ(aligned_makers().front().make(64, opaque(kImpossible)), nullptr);
  EXPECT_EQ(calls, 0);
}

// ---- as C++ programs use them ------------------------------------------------------------------

struct alignas(256) OverAligned {
  char bytes[300];
};

TEST(New, Expressions) {
  for (int round = 0; round < 100; ++round) {
    std::unique_ptr<OverAligned> one(new OverAligned);
    std::unique_ptr<OverAligned[]> many(new OverAligned[7]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(opaque<void*>(one.get())) % 256, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(opaque<void*>(many.get())) % 256, 0u);
    std::map<int, std::string> tree;
    for (int at = 0; at < 200; ++at) tree[at * 7919 % 200] = std::string(static_cast<size_t>(at), 'x');
    for (const auto& [key, text] : tree) EXPECT_EQ(text.size() * 7919 % 200, static_cast<size_t>(key));
    std::pmr::vector<int> numbers(1000, std::pmr::new_delete_resource());
    EXPECT_EQ(numbers.size(), 1000u);
  }
  EXPECT_THROW(opaque(new int[opaque(SIZE_MAX / 2)]), std::bad_alloc);
}

// Common practice, and what libraries with their own C hooks rely on.
TEST(New, BlocksMayBeFreedByFree) {
  for (const size_t size : {1, 100, 5000, 300000}) {
    free(opaque(::operator new(size)));
    ::operator delete(opaque(malloc(size)));
  }
}

}  // namespace
