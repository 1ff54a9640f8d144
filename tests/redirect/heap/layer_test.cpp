// A process into which reheap.dll has come: that every function of the layer serves, and what it leaves to the
// original.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "in_process.h"
#include "support/pprof_file.h"
#include "support/windows/committed.h"

// Of ntdll.
extern "C" {
__declspec(dllimport) BOOLEAN NTAPI RtlGetUserInfoHeap(HANDLE, ULONG, void*, void**, ULONG*);
__declspec(dllimport) BOOLEAN NTAPI RtlSetUserValueHeap(HANDLE, ULONG, void*, void*);
}

namespace {

constexpr DWORD kUserInfo = 0x100;

TEST_F(HeapsTest, TheReportTells) {
  EXPECT_NE(reheap_.report().find("ntdll.dll at "), std::string::npos);
  EXPECT_NE(reheap_.report().find(": replaced heap (1"), std::string::npos) << reheap_.report();
}

TEST_F(HeapsTest, ServesTheProcessHeap) {
  for (SIZE_T size : {0, 1, 15, 16, 17, 100, 1000, 5000, 32768, 32769, 1000000}) {
    void* block = make(process_, size, HEAP_ZERO_MEMORY);
    EXPECT_EQ(HeapSize(process_, 0, block), size);
    EXPECT_TRUE(HeapValidate(process_, 0, block));
    for (SIZE_T i = 0; i < size; ++i) ASSERT_EQ(static_cast<char*>(block)[i], 0);
    memset(block, 0x77, size);
    EXPECT_TRUE(HeapFree(process_, 0, block));
  }
  EXPECT_TRUE(HeapFree(process_, 0, nullptr));
}

TEST_F(HeapsTest, WhatWasMadeBeforeStaysWithItsMaker) {
  EXPECT_FALSE(reheap_.owns(reheap_.early));
  EXPECT_EQ(HeapSize(process_, 0, reheap_.early), 100u);
  memset(reheap_.early, 5, 100);
  // Where it goes is the maker's to decide.
  auto* grown = static_cast<char*>(HeapReAlloc(process_, HEAP_ZERO_MEMORY, reheap_.early, 500));
  EXPECT_EQ(grown[99], 5);
  EXPECT_EQ(grown[100], 0);
  EXPECT_EQ(grown[499], 0);
  EXPECT_TRUE(HeapFree(process_, 0, grown));
  EXPECT_TRUE(HeapFree(process_, 0, HeapAlloc(process_, kUserInfo, 10)));
  void* block = HeapAlloc(reheap_.early_heap, 0, 10);
  EXPECT_FALSE(reheap_.owns(block));
  EXPECT_TRUE(HeapDestroy(reheap_.early_heap));
}

TEST_F(HeapsTest, ResizesFromTheExactSize) {
  auto* block = static_cast<unsigned char*>(make(process_, 100));
  memset(block, 1, 112);
  EXPECT_EQ(HeapReAlloc(process_, HEAP_REALLOC_IN_PLACE_ONLY | HEAP_ZERO_MEMORY, block, 110), block);
  EXPECT_EQ(HeapSize(process_, 0, block), 110u);
  EXPECT_EQ(block[99], 1);
  EXPECT_EQ(block[100], 0);
  EXPECT_EQ(block[109], 0);
  error();
  EXPECT_EQ(HeapReAlloc(process_, HEAP_REALLOC_IN_PLACE_ONLY, block, 5000), nullptr);
  EXPECT_EQ(error(), DWORD{ERROR_NOT_ENOUGH_MEMORY});
  EXPECT_EQ(HeapReAlloc(process_, HEAP_REALLOC_IN_PLACE_ONLY, block, 3), block);
  block = static_cast<unsigned char*>(HeapReAlloc(process_, HEAP_ZERO_MEMORY, block, 100000));
  EXPECT_EQ(block[2], 1);
  for (int i = 3; i < 100000; ++i) ASSERT_EQ(block[i], 0);
  EXPECT_EQ(HeapReAlloc(process_, 0, block, SIZE_MAX), nullptr);
  EXPECT_EQ(HeapSize(process_, 0, block), 100000u);
  EXPECT_TRUE(HeapFree(process_, 0, block));
}

TEST_F(HeapsTest, BadPointersAreRefusedAndHarmNothing) {
  HANDLE heap = HeapCreate(0, 0, 0);
  for (HANDLE of : {process_, heap}) {
    for (SIZE_T size : {1, 30, 1000, 20000, 100000}) {
      auto* block = static_cast<char*>(make(of, size));
      for (char* bad : {block + 1, block + 8, block + 16, block + 48}) {
        error();
        EXPECT_FALSE(HeapFree(of, 0, bad)) << size << " at " << bad - block;
        EXPECT_EQ(error(), DWORD{ERROR_INVALID_PARAMETER});
        EXPECT_EQ(HeapSize(of, 0, bad), kFailed);
        EXPECT_EQ(HeapReAlloc(of, 0, bad, 10), nullptr);
        EXPECT_FALSE(HeapValidate(of, 0, bad));
        if (size < 16) break;  // behind it lies another block
      }
      EXPECT_TRUE(HeapFree(of, 0, block));
      error();
      EXPECT_FALSE(HeapFree(of, 0, block)) << size;
      EXPECT_EQ(error(), DWORD{ERROR_INVALID_PARAMETER});
      EXPECT_EQ(HeapSize(of, 0, block), kFailed);
      EXPECT_EQ(HeapReAlloc(of, 0, block, size), nullptr);
      EXPECT_FALSE(HeapValidate(of, 0, block));
    }
  }
  HeapDestroy(heap);
}

TEST_F(HeapsTest, ABlockFreedByAnotherThreadIsNotFreedTwice) {
  void* block = make(process_, 100);
  std::thread([&] { EXPECT_TRUE(HeapFree(process_, 0, block)); }).join();
  EXPECT_FALSE(HeapFree(process_, 0, block));
  std::thread([&] { EXPECT_FALSE(HeapFree(process_, 0, block)); }).join();
}

TEST_F(HeapsTest, BlocksOfTheCrtAndOfTheHeapAreTheSame) {
  void* block = calloc(1, 100);
  EXPECT_EQ(HeapSize(process_, 0, block), 100u);
  EXPECT_TRUE(HeapFree(process_, 0, block));
  free(make(process_, 100));
}

bool is_alive(const void* block) { return HeapSize(GetProcessHeap(), 0, block) != static_cast<SIZE_T>(-1); }

TEST_F(HeapsTest, APrivateHeapGoesWhole) {
  for (int round = 0; round < 50; ++round) {
    HANDLE heap = HeapCreate(round % 2 != 0 ? HEAP_NO_SERIALIZE : 0, 0, 0);
    std::vector<void*> blocks;
    for (SIZE_T size : {1, 100, 5000, 200000})
      for (int i = 0; i < 20; ++i) blocks.push_back(make(heap, size));
    EXPECT_TRUE(HeapFree(heap, 0, blocks[3]));
    EXPECT_TRUE(HeapDestroy(heap));
    // What others of the process, like the helper thread, got meanwhile may begin where one of them began.
    EXPECT_LT(std::count_if(blocks.begin(), blocks.end(), [&](void* block) { return is_alive(block); }), 8);
  }
}

TEST_F(HeapsTest, APrivateHeapsBlockComesWithItsHandle) {
  HANDLE one = HeapCreate(0, 0, 0), other = HeapCreate(0, 0, 0);
  void* block = make(one, 100);
  for (HANDLE wrong : {other, process_}) {
    EXPECT_FALSE(HeapFree(wrong, 0, block));
    EXPECT_EQ(HeapSize(wrong, 0, block), kFailed);
    EXPECT_FALSE(HeapValidate(wrong, 0, block));
  }
  EXPECT_TRUE(HeapFree(one, 0, block));
  HeapDestroy(one);
  HeapDestroy(other);
}

TEST_F(HeapsTest, WhatIsNotPlainIsLeftToTheOriginal) {
  for (HANDLE heap : {HeapCreate(0, 0, 1 << 20), HeapCreate(HEAP_CREATE_ENABLE_EXECUTE, 0, 0)}) {
    void* block = HeapAlloc(heap, 0, 100);
    EXPECT_FALSE(reheap_.owns(block));
    EXPECT_TRUE(HeapFree(heap, 0, block));
    EXPECT_TRUE(HeapDestroy(heap));
  }
  void* block = HeapAlloc(process_, kUserInfo, 100);
  EXPECT_FALSE(reheap_.owns(block));
  EXPECT_TRUE(HeapFree(process_, 0, block));
  block = HeapAlloc(process_, kUserInfo, 100);
  for (SIZE_T size : {200, 5000, 1000000, 50}) {
    block = HeapReAlloc(process_, kUserInfo, block, size);
    EXPECT_FALSE(reheap_.owns(block)) << size;
    EXPECT_TRUE(RtlSetUserValueHeap(process_, 0, block, this));
    void* value = nullptr;
    ULONG flags = 0;
    EXPECT_TRUE(RtlGetUserInfoHeap(process_, 0, block, &value, &flags));
    EXPECT_EQ(value, this) << size;
  }
  EXPECT_TRUE(HeapFree(process_, 0, block));
  HLOCAL fixed = LocalAlloc(LMEM_FIXED, 100);
  for (SIZE_T size : {200, 5000, 1000000, 50}) {
    fixed = LocalReAlloc(fixed, size, LMEM_MOVEABLE);
    EXPECT_EQ(LocalSize(fixed), size);
    EXPECT_EQ(LocalHandle(fixed), fixed);
  }
  EXPECT_EQ(LocalFree(fixed), nullptr);
  HGLOBAL movable = GlobalAlloc(GMEM_MOVEABLE | GMEM_ZEROINIT, 100);
  EXPECT_EQ(GlobalSize(movable), 100u);
  EXPECT_EQ(*static_cast<char*>(GlobalLock(movable)), 0);
  GlobalUnlock(movable);
  for (SIZE_T size : {200, 5000, 1000000, 50}) {
    movable = GlobalReAlloc(movable, size, GMEM_MOVEABLE);
    EXPECT_EQ(GlobalSize(movable), size);
    EXPECT_EQ(GlobalHandle(GlobalLock(movable)), movable);
    GlobalUnlock(movable);
  }
  EXPECT_EQ(GlobalFree(movable), nullptr);
}

TEST_F(HeapsTest, BlocksOfOursHaveNoUserValues) {
  void* block = make(process_, 100);
  void* value = this;
  ULONG flags = 1;
  EXPECT_TRUE(RtlGetUserInfoHeap(process_, 0, block, &value, &flags));
  EXPECT_EQ(value, this);  // left alone
  EXPECT_EQ(flags, 0u);
  error();
  EXPECT_FALSE(RtlSetUserValueHeap(process_, 0, block, this));
  EXPECT_EQ(error(), 12345u);
  HeapFree(process_, 0, block);
}

// All allocations that fit are on guarded pages, and in a profile, as long as this object is there.
class Watched {
 public:
  explicit Watched(HMODULE module) {
    EXPECT_TRUE(find(module, "rh_option_set", set_));
    EXPECT_TRUE(find(module, "rh_profile_start", start_));
    EXPECT_TRUE(find(module, "rh_profile_stop", stop_));
    EXPECT_TRUE(find(module, "rh_profile_write", write_));
    EXPECT_TRUE(set_("sample_guard", "1"));
    EXPECT_TRUE(start_(1));
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    stop_();
    set_("sample_guard", "0");
  }

  // The bytes that are live, of stacks that have as many as none but the caller's.
  std::uint64_t live(std::uint64_t least) const {
    char folder[MAX_PATH] = {};
    GetTempPathA(MAX_PATH, folder);
    const std::string path = std::string(folder) + "heaps_test" + std::to_string(GetCurrentProcessId());
    EXPECT_TRUE(write_(path.c_str()));
    const pprof_file::Fields profile(pprof_file::unpacked(pprof_file::read_file(path)));
    DeleteFileA(path.c_str());
    std::uint64_t sum = 0;
    for (const std::string& sample : profile.all(2)) {
      const std::uint64_t bytes = pprof_file::varints(pprof_file::Fields(sample).one(2)).at(3);
      if (bytes >= least) sum += bytes;
    }
    return sum;
  }

 private:
  decltype(&rh_option_set) set_;
  decltype(&rh_profile_start) start_;
  decltype(&rh_profile_stop) stop_;
  decltype(&rh_profile_write) write_;
};

// What a profile says is live, where there may be no stacks: whatever else is live belongs to the same sample then.
bool is_live(std::uint64_t found, std::uint64_t bytes) {
  constexpr std::uint64_t kElse = sizeof(void*) == 8 ? 0 : 4096;
  return found >= bytes && found - bytes <= kElse;
}

TEST_F(HeapsTest, BlocksOfAPrivateHeapAreWatched) {
  constexpr SIZE_T kSmall = 100, kMedium = 20000, kLarge = 30 << 20;
  HANDLE heap = HeapCreate(0, 0, 0), other = HeapCreate(0, 0, 0);
  const Watched watched(reheap_.module);
  std::vector<void*> blocks;
  for (SIZE_T size : {kSmall, kMedium, kLarge, kSmall, kLarge}) blocks.push_back(make(heap, size, HEAP_ZERO_MEMORY));
  for (void* block : {blocks[0], blocks[3]}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 16, 0u);
    EXPECT_EQ(HeapSize(heap, 0, block), kSmall);
    EXPECT_TRUE(HeapValidate(heap, 0, block));
    EXPECT_FALSE(HeapValidate(other, 0, block));
    EXPECT_FALSE(HeapFree(other, 0, block));
    EXPECT_FALSE(HeapFree(process_, 0, block));
  }
  PROCESS_HEAP_ENTRY entry = {};
  size_t seen = 0;
  while (HeapWalk(heap, &entry)) seen += reheap_.owns(entry.lpData);
  EXPECT_EQ(seen, blocks.size());
  EXPECT_PRED2(is_live, watched.live(kLarge), 2 * kSmall + kMedium + 2 * kLarge);
  std::thread([&] { EXPECT_TRUE(HeapFree(heap, 0, blocks[2])); }).join();
  EXPECT_PRED2(is_live, watched.live(kLarge), 2 * kSmall + kMedium + kLarge);
  blocks[0] = HeapReAlloc(heap, 0, blocks[0], 2 * kSmall);
  EXPECT_EQ(HeapSize(heap, 0, blocks[0]), 2 * kSmall);
  EXPECT_TRUE(HeapFree(heap, 0, blocks[0]));
  EXPECT_TRUE(HeapDestroy(heap));
  EXPECT_EQ(watched.live(kLarge), 0u);
  EXPECT_FALSE(is_alive(blocks[3]));
  EXPECT_FALSE(is_alive(blocks[4]));
  EXPECT_TRUE(HeapDestroy(other));
}

// Of what is known so well the report is worth more than the refusal that others get.
TEST_F(HeapsTest, AGuardedBlockIsNotFreedTwiceWithoutAWord) {
  HANDLE heap = HeapCreate(0, 0, 0);
  const Watched watched(reheap_.module);
  for (HANDLE of : {process_, heap}) {
    void* block = make(of, 100);
    EXPECT_TRUE(HeapFree(of, 0, block));
    EXPECT_EQ(HeapSize(of, 0, block), kFailed);
    EXPECT_FALSE(HeapValidate(of, 0, block));
    EXPECT_DEATH(HeapFree(of, 0, block), "HeapFree of what is free already: the block 0x.* of 100 bytes; made by");
    EXPECT_DEATH(HeapReAlloc(of, 0, block, 10), "HeapReAlloc of what is free already: the block 0x");
    block = make(of, 100);
    EXPECT_DEATH(HeapFree(of, 0, static_cast<char*>(block) + 16), "HeapFree of invalid pointer 0x");
    EXPECT_TRUE(HeapFree(of, 0, block));
  }
  EXPECT_TRUE(HeapDestroy(heap));
}

TEST_F(HeapsTest, AWalkFindsEveryBlockOnce) {
  HANDLE heap = HeapCreate(0, 0, 0);
  std::vector<std::pair<void*, SIZE_T>> blocks;
  for (SIZE_T i = 0; i < 3000; ++i) {
    SIZE_T size = i % 100 == 0 ? 50000 + i : i % 600;
    blocks.emplace_back(make(heap, size), size);
  }
  for (size_t i = 0; i < blocks.size(); i += 2) HeapFree(heap, 0, blocks[i].first);
  // Freed by the C runtime's free it is as free.
  free(blocks[1].first);
  size_t seen = 0;
  PROCESS_HEAP_ENTRY entry = {};
  ASSERT_TRUE(HeapLock(heap));
  while (HeapWalk(heap, &entry)) {
    if (!reheap_.owns(entry.lpData)) continue;
    EXPECT_EQ(entry.wFlags & PROCESS_HEAP_ENTRY_BUSY, PROCESS_HEAP_ENTRY_BUSY);
    size_t place = 0;
    while (place < blocks.size() && blocks[place].first != entry.lpData) ++place;
    ASSERT_LT(place, blocks.size());
    EXPECT_EQ(place % 2, 1u);
    EXPECT_NE(place, 1u);
    EXPECT_EQ(entry.cbData, blocks[place].second);
    blocks[place].first = nullptr;
    ++seen;
  }
  EXPECT_EQ(error(), DWORD{ERROR_NO_MORE_ITEMS});
  EXPECT_TRUE(HeapUnlock(heap));
  EXPECT_EQ(seen, blocks.size() / 2 - 1);
  HeapDestroy(heap);
}

// Another thread's allocation does not come through while this one holds the lock.
TEST_F(HeapsTest, OthersWaitForTheLock) {
  HANDLE heap = HeapCreate(0, 0, 0);
  for (HANDLE of : {process_, heap}) {
    std::atomic<unsigned> steps{0};
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop) {
        HeapFree(of, 0, HeapAlloc(of, 0, 10));
        ++steps;
      }
    });
    while (steps < 1000) Sleep(1);
    ASSERT_TRUE(HeapLock(of));
    ASSERT_TRUE(HeapLock(of));
    HeapUnlock(of);
    unsigned at_most = steps + 1;  // the call under way
    for (int i = 0; i < 50; ++i) {
      void* block = make(of, 10);
      HeapFree(of, 0, block);
      Sleep(1);
      EXPECT_LE(steps, at_most);
    }
    HeapUnlock(of);
    unsigned now = steps;
    while (steps < now + 1000) Sleep(1);
    stop = true;
    other.join();
  }
  HeapDestroy(heap);
}

// While the process heap is locked its short paths are closed, for every other handle too.
TEST_F(HeapsTest, NoHandleIsNoHeapWhileTheProcessHeapIsLocked) {
  void* block = make(process_, 100);
  ASSERT_TRUE(HeapLock(process_));
  EXPECT_EQ(HeapAlloc(nullptr, 0, 100), nullptr);
  EXPECT_TRUE(HeapFree(process_, 0, block));
  EXPECT_TRUE(HeapUnlock(process_));
  EXPECT_EQ(HeapAlloc(nullptr, 0, 100), nullptr);
}

// The original's empty heap, which every heap of ours keeps beside it, commits nothing of what was asked for first.
TEST_F(HeapsTest, TheInitialSizeIsCommittedOnce) {
  constexpr SIZE_T kInitial = 64 << 20, kPiece = 100'000;
  const SIZE_T before = contract::committed();
  HANDLE heap = HeapCreate(0, kInitial, 0);
  ASSERT_NE(heap, nullptr);
  for (SIZE_T made = 0; made < kInitial; made += kPiece) make(heap, kPiece);
  EXPECT_LT(contract::committed() - before, kInitial + kInitial / 4);
  EXPECT_TRUE(HeapDestroy(heap));
}

TEST_F(HeapsTest, WithoutMemoryTheErrorIsTheSystems) {
  HANDLE heap = HeapCreate(0, 0, 0);
  for (HANDLE of : {process_, heap}) {
    error();
    EXPECT_EQ(HeapAlloc(of, 0, SIZE_MAX - 100), nullptr);
    EXPECT_EQ(error(), DWORD{ERROR_NOT_ENOUGH_MEMORY});
    EXPECT_EQ(HeapAlloc(of, HEAP_ZERO_MEMORY, SIZE_MAX / 2), nullptr);
    EXPECT_EQ(error(), DWORD{ERROR_NOT_ENOUGH_MEMORY});
  }
  HeapDestroy(heap);
}

unsigned g_raised = 0;

LONG CALLBACK count_and_go_on(EXCEPTION_POINTERS* what) {
  if (what->ExceptionRecord->ExceptionCode != static_cast<DWORD>(STATUS_NO_MEMORY)) return EXCEPTION_CONTINUE_SEARCH;
  ++g_raised;
  return what->ExceptionRecord->ExceptionFlags == 0 ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
}

TEST_F(HeapsTest, RaisesWhereThatIsAskedFor) {
  HANDLE heap = HeapCreate(HEAP_GENERATE_EXCEPTIONS, 0, 0);
  void* handler = AddVectoredExceptionHandler(1, count_and_go_on);
  EXPECT_EQ(HeapAlloc(process_, HEAP_GENERATE_EXCEPTIONS, SIZE_MAX / 2), nullptr);
  EXPECT_EQ(g_raised, 1u);
  EXPECT_EQ(HeapAlloc(heap, 0, SIZE_MAX / 2), nullptr);
  EXPECT_EQ(g_raised, 2u);
  void* block = make(heap, 10);
  EXPECT_EQ(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, 1000), nullptr);
  EXPECT_EQ(g_raised, 3u);
  EXPECT_EQ(HeapAlloc(process_, 0, SIZE_MAX / 2), nullptr);
  EXPECT_EQ(g_raised, 3u);
  RemoveVectoredExceptionHandler(handler);
  HeapDestroy(heap);
}

TEST_F(HeapsTest, HeapsComeAndGoInManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<unsigned> wrong{0};
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 100; ++round) {
        HANDLE heap = HeapCreate(0, 0, 0);
        unsigned char* blocks[50];
        for (int i = 0; i < 50; ++i) {
          blocks[i] = static_cast<unsigned char*>(HeapAlloc(heap, 0, 100 + i));
          memset(blocks[i], thread, 100 + i);
        }
        for (int i = 0; i < 50; ++i) {
          if (blocks[i][0] != thread || blocks[i][99 + i] != thread) ++wrong;
          if (i % 3 == 0 && !HeapFree(heap, 0, blocks[i])) ++wrong;
        }
        if (!HeapDestroy(heap)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST_F(HeapsTest, CompactingHarmsNothing) {
  HANDLE heap = HeapCreate(0, 0, 0);
  std::vector<char*> blocks;
  for (int i = 0; i < 2000; ++i) blocks.push_back(static_cast<char*>(make(heap, 300)));
  for (int i = 0; i < 2000; i += 1)
    if (i % 100 != 0)
      HeapFree(heap, 0, blocks[i]);
    else
      memset(blocks[i], 5, 300);
  HeapCompact(heap, 0);
  HeapCompact(process_, 0);
  for (int i = 0; i < 2000; i += 100) {
    EXPECT_EQ(blocks[i][299], 5);
    EXPECT_EQ(HeapSize(heap, 0, blocks[i]), 300u);
  }
  for (int i = 0; i < 2000; ++i) HeapFree(heap, 0, make(heap, 300));
  HeapDestroy(heap);
}

// ---- which layers ---------------------------------------------------------------------------------

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void use(HANDLE heap, const Reheap& reheap, bool ours) {
  void* block = HeapAlloc(heap, 0, 100);
  EXPECT_EQ(reheap.owns(block), ours);
  EXPECT_TRUE(HeapFree(heap, 0, block));
}

TEST(Layers, TheHeapAlone) {
  SetEnvironmentVariableA("REHEAP_LAYERS", "heap");
  Reheap reheap;
  EXPECT_TRUE(holds(reheap.report(), "replaced heap"));
  EXPECT_FALSE(holds(reheap.report(), "replaced base"));
  use(GetProcessHeap(), reheap, true);
  // The C runtime's heap was there before.
  void* block = calloc(1, 100);
  EXPECT_FALSE(reheap.owns(block));
  free(block);
}

TEST(Layers, TheRuntimesAlone) {
  SetEnvironmentVariableA("REHEAP_LAYERS", "crt");
  Reheap reheap;
  EXPECT_FALSE(holds(reheap.report(), "ntdll.dll"));
  EXPECT_TRUE(holds(reheap.report(), "replaced base"));
  use(GetProcessHeap(), reheap, false);
  HANDLE heap = HeapCreate(0, 0, 0);
  use(heap, reheap, false);
  HeapDestroy(heap);
  void* block = calloc(1, 100);
  EXPECT_TRUE(reheap.owns(block));
  free(block);
}

// A C runtime that comes later has a heap that is ours, through which its malloc comes.
TEST(Layers, ARuntimeComesThroughTheHeap) {
  SetEnvironmentVariableA("REHEAP_LAYERS", "heap");
  Reheap reheap;
  HMODULE runtime = LoadLibraryA("msvcr100.dll");
  ASSERT_NE(runtime, nullptr);
  void* (*allocate)(size_t);
  void (*release)(void*);
  ASSERT_TRUE(find(runtime, "malloc", allocate) && find(runtime, "free", release));
  void* block = allocate(100);
  EXPECT_TRUE(reheap.owns(block));
  release(block);
}

// ---- the end ---------------------------------------------------------------------------------------

DWORD run_to_its_end(std::string command) {
  STARTUPINFOA start = {};
  start.cb = sizeof(start);
  PROCESS_INFORMATION process;
  if (!CreateProcessA(nullptr, command.data(), nullptr, nullptr, FALSE, 0, nullptr, nullptr, &start, &process))
    return GetLastError();
  constexpr DWORD kPatience = 30000;
  bool ended = WaitForSingleObject(process.hProcess, kPatience) == WAIT_OBJECT_0;
  if (!ended) TerminateProcess(process.hProcess, 99);
  WaitForSingleObject(process.hProcess, kPatience);
  DWORD code = 0;
  GetExitCodeProcess(process.hProcess, &code);
  CloseHandle(process.hThread);
  CloseHandle(process.hProcess);
  return code;
}

// The helper starts meanwhile; the program knows of no other thread.
TEST(End, AProgramOfOneThreadMayLeaveItsHeapLocked) {
  EXPECT_EQ(run_to_its_end("\"" HEAPS_LOCKED "\" \"" REHEAP_DLL "\""), 0u);
}

// A thread that starts at the limit gets from the loader what it needs.
TEST(Limit, ThreadsStartThereAndEnd) {
  SetEnvironmentVariableA("REHEAP_LIMIT", "32M");
  const DWORD code = run_to_its_end("\"" HEAPS_FULL "\" \"" REHEAP_DLL "\"");
  SetEnvironmentVariableA("REHEAP_LIMIT", nullptr);
  EXPECT_EQ(code, 0u);
}

TEST(End, AProcessEndsWhileItsThreadsAllocate) {
  for (int round = 0; round < 20; ++round)
    ASSERT_EQ(run_to_its_end("\"" HEAPS_ENDS "\" \"" REHEAP_DLL "\" \"" HEAPS_LATE "\""), 0u) << "round " << round;
}

}  // namespace
