// Heaps over the program's memory and near code, in a process into which reheap.dll has come: what the system's heap
// functions and the C runtimes do with their blocks.
#include <cerrno>
#include <cstring>
#include <vector>

#include "in_process.h"

// Of ntdll.
extern "C" {
__declspec(dllimport) BOOLEAN NTAPI RtlGetUserInfoHeap(HANDLE, ULONG, void*, void**, ULONG*);
__declspec(dllimport) BOOLEAN NTAPI RtlSetUserValueHeap(HANDLE, ULONG, void*, void*);
}

namespace {

constexpr size_t kMemory = 256 * 1024;

alignas(16) unsigned char memory[kMemory];

bool is_filled(const void* block, unsigned char value, size_t from, size_t to) {
  for (size_t at = from; at < to; ++at)
    if (static_cast<const unsigned char*>(block)[at] != value) return false;
  return true;
}

class RegionsTest : public HeapsTest {
 protected:
  RegionsTest() {
    HMODULE module = reheap_.module;
    EXPECT_TRUE(find(module, "rh_heap_create_in", create_in_) && find(module, "rh_heap_create_near", create_near_));
    EXPECT_TRUE(find(module, "rh_heap_malloc", malloc_) && find(module, "rh_heap_destroy", destroy_));
    EXPECT_TRUE(find(module, "rh_heap_of", heap_of_) && find(module, "rh_heap_stats_get", stats_get_));
    heaps_ = {create_in_(memory, kMemory), create_near_(reinterpret_cast<const void*>(&is_filled), kMemory)};
  }
  ~RegionsTest() override {
    for (rh_heap* heap : heaps_) {
      EXPECT_EQ(blocks_in(heap), 0u);
      destroy_(heap);
    }
  }

  void* make(rh_heap* heap, size_t size = 100) {
    void* block = malloc_(heap, size);
    EXPECT_TRUE(block != nullptr && heap_of_(block) == heap);
    return memset(block, 0x5A, size);
  }

  size_t blocks_in(rh_heap* heap) const {
    rh_heap_stats stats = {};
    stats.struct_size = sizeof(stats);
    EXPECT_TRUE(stats_get_(heap, &stats));
    return stats.blocks;
  }

  // It is still the heap's, and holds what it did.
  void expect_kept(rh_heap* heap, const void* block, size_t size = 100) const {
    EXPECT_EQ(heap_of_(block), heap);
    EXPECT_TRUE(is_filled(block, 0x5A, 0, size));
  }

  void expect_refused(HANDLE of, void* pointer) {
    EXPECT_FALSE(HeapValidate(of, 0, pointer));
    EXPECT_FALSE(RtlGetUserInfoHeap(of, 0, pointer, nullptr, nullptr));
    error();
    EXPECT_EQ(HeapSize(of, 0, pointer), kFailed);
    EXPECT_EQ(error(), DWORD{ERROR_INVALID_PARAMETER});
    EXPECT_EQ(HeapReAlloc(of, 0, pointer, 200), nullptr);
    EXPECT_EQ(error(), DWORD{ERROR_INVALID_PARAMETER});
    EXPECT_FALSE(HeapFree(of, 0, pointer));
    EXPECT_EQ(error(), DWORD{ERROR_INVALID_PARAMETER});
  }

  std::vector<rh_heap*> heaps_;

 private:
  decltype(&rh_heap_create_in) create_in_;
  decltype(&rh_heap_create_near) create_near_;
  decltype(&rh_heap_malloc) malloc_;
  decltype(&rh_heap_destroy) destroy_;
  decltype(&rh_heap_of) heap_of_;
  decltype(&rh_heap_stats_get) stats_get_;
};

// With any handle: they have none of their own.
TEST_F(RegionsTest, TheHeapFunctionsKnowTheirBlocks) {
  HANDLE own = HeapCreate(0, 0, 0);
  for (rh_heap* heap : heaps_) {
    for (HANDLE of : {process_, own}) {
      void* block = make(heap);
      EXPECT_EQ(HeapSize(of, 0, block), 100u);
      EXPECT_TRUE(HeapValidate(of, 0, block));
      void* value = this;
      ULONG flags = 1;
      EXPECT_TRUE(RtlGetUserInfoHeap(of, 0, block, &value, &flags));
      EXPECT_TRUE(value == this && flags == 0);
      EXPECT_FALSE(RtlSetUserValueHeap(of, 0, block, this));
      EXPECT_EQ(HeapReAlloc(of, HEAP_REALLOC_IN_PLACE_ONLY | HEAP_ZERO_MEMORY, block, 1000), block);
      EXPECT_TRUE(is_filled(block, 0, 100, 1000));
      void* behind = make(heap);
      error();
      EXPECT_EQ(HeapReAlloc(of, HEAP_REALLOC_IN_PLACE_ONLY, block, 5000), nullptr);
      EXPECT_EQ(error(), DWORD{ERROR_NOT_ENOUGH_MEMORY});
      block = HeapReAlloc(of, HEAP_ZERO_MEMORY, block, 5000);
      expect_kept(heap, block);
      EXPECT_TRUE(is_filled(block, 0, 100, 5000));
      error();
      EXPECT_EQ(HeapReAlloc(of, 0, block, 2 * kMemory), nullptr);
      EXPECT_EQ(error(), DWORD{ERROR_NOT_ENOUGH_MEMORY});
      block = HeapReAlloc(of, 0, block, 50);
      EXPECT_EQ(HeapSize(of, 0, block), 50u);
      expect_kept(heap, block, 50);
      EXPECT_TRUE(HeapFree(of, 0, block));
      EXPECT_TRUE(HeapFree(of, 0, behind));
      EXPECT_EQ(error(), 12345u);
    }
    void* block = make(heap);
    EXPECT_EQ(LocalSize(block), 100u);
    EXPECT_EQ(LocalFree(block), nullptr);
  }
  HeapDestroy(own);
}

// As other blocks of reheap's; and nothing ends.
TEST_F(RegionsTest, TheHeapFunctionsRefuseWhatIsNoLiveBlock) {
  HANDLE own = HeapCreate(0, 0, 0);
  for (rh_heap* heap : heaps_) {
    for (HANDLE of : {process_, own}) {
      char* block = static_cast<char*>(make(heap));
      for (size_t within : {1, 8, 16, 64}) expect_refused(of, block + within);
      expect_kept(heap, block);
      EXPECT_TRUE(HeapFree(of, 0, block));
      expect_refused(of, block);
    }
  }
  HeapDestroy(own);
}

struct Runtime {
  explicit Runtime(const char* name) {
    HMODULE module = LoadLibraryA(name);
    EXPECT_TRUE(find(module, "realloc", realloc) && find(module, "free", free) && find(module, "_msize", msize));
    EXPECT_TRUE(find(module, "_expand", expand) && find(module, "_errno", errno_address));
    EXPECT_TRUE(find(module, "_aligned_realloc", aligned_realloc) && find(module, "_aligned_free", aligned_free));
    EXPECT_TRUE(find(module, "_aligned_offset_realloc", offset_realloc));
    find(module, "_recalloc", recalloc);
    find(module, "_aligned_msize", aligned_msize);
    find(module, "_aligned_recalloc", aligned_recalloc);
  }

  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  size_t (*msize)(void*);
  void* (*expand)(void*, size_t);
  int* (*errno_address)();
  void* (*aligned_realloc)(void*, size_t, size_t);
  void (*aligned_free)(void*);
  void* (*offset_realloc)(void*, size_t, size_t, size_t);
  // msvcrt's may lack these.
  void* (*recalloc)(void*, size_t, size_t);
  size_t (*aligned_msize)(void*, size_t, size_t);
  void* (*aligned_recalloc)(void*, size_t, size_t, size_t);
};

class RuntimesOfRegionsTest : public RegionsTest {
 protected:
  void resize(const Runtime& runtime, rh_heap* heap) {
    void* block = make(heap);
    EXPECT_EQ(runtime.msize(block), 100u);
    EXPECT_EQ(runtime.expand(block, 1000), block);
    EXPECT_EQ(runtime.msize(block), 1000u);
    void* behind = make(heap);
    EXPECT_TRUE(fails(runtime, runtime.expand(block, 5000)));
    block = runtime.realloc(block, 5000);
    expect_kept(heap, block);
    EXPECT_TRUE(fails(runtime, runtime.realloc(block, 2 * kMemory)));
    if (runtime.recalloc != nullptr) {
      block = runtime.recalloc(block, 60, 100);
      expect_kept(heap, block);
      EXPECT_TRUE(is_filled(block, 0, 5000, 6000));
    }
    runtime.free(block);
    EXPECT_EQ(runtime.realloc(behind, 0), nullptr);
  }

  void resize_aligned(const Runtime& runtime, rh_heap* heap) {
    void* block = runtime.aligned_realloc(make(heap), 3000, 256);
    expect_kept(heap, block);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u);
    EXPECT_TRUE(fails(runtime, runtime.aligned_realloc(block, 2 * kMemory, 256)));
    if (runtime.aligned_recalloc != nullptr) {
      EXPECT_EQ(runtime.aligned_msize(block, 256, 0), 3000u);
      block = runtime.aligned_recalloc(block, 40, 100, 256);
      expect_kept(heap, block);
      EXPECT_TRUE(is_filled(block, 0, 3000, 4000));
    }
    runtime.aligned_free(block);
    // Within its block is no place for one in a region.
    block = runtime.offset_realloc(make(heap), 300, 256, 100);
    EXPECT_EQ((reinterpret_cast<uintptr_t>(block) + 100) % 256, 0u);
    EXPECT_TRUE(reheap_.owns(block) && is_filled(block, 0x5A, 0, 100));
    runtime.aligned_free(block);
  }

 private:
  static bool fails(const Runtime& runtime, void* block) {
    const bool failed = block == nullptr && *runtime.errno_address() == ENOMEM;
    *runtime.errno_address() = 0;
    return failed;
  }
};

TEST_F(RuntimesOfRegionsTest, TheyKnowTheirBlocks) {
  for (const char* name : {"ucrtbase.dll", "msvcrt.dll"}) {
    SCOPED_TRACE(name);
    const Runtime runtime(name);
    for (rh_heap* heap : heaps_) {
      resize(runtime, heap);
      resize_aligned(runtime, heap);
    }
  }
}

TEST_F(RuntimesOfRegionsTest, AFreeOfWhatIsNoneEndsTheProcess) {
  const Runtime runtime("ucrtbase.dll");
  void* block = make(heaps_[0]);
  runtime.free(block);
  EXPECT_DEATH(runtime.free(block), "free of a block that is free already: 0x");
}

}  // namespace
