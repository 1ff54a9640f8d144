#include <string.h>

#include "checks.h"
#include "support/windows/committed.h"
#include "thread.h"

namespace {

struct Created {
  const char* name;
  DWORD flags;
  size_t initial, maximum;
};
constexpr Created kCreated[] = {{"plain", 0, 0, 0},
                                {"one byte", 0, 1, 0},
                                {"64k", 0, 65536, 0},
                                {"1M", 0, kMiB, 0},
                                {"32M", 0, 32 * kMiB, 0},
                                {"unserialized", HEAP_NO_SERIALIZE, 0, 0},
                                {"raising", HEAP_GENERATE_EXCEPTIONS, 0, 0},
                                {"executable", HEAP_CREATE_ENABLE_EXECUTE, 0, 0},
                                {"at most 1M", 0, 0, kMiB},
                                {"at most 1M, all at once", 0, kMiB, kMiB},
                                {"at most less than at first", 0, 2 * kMiB, kMiB},
                                {"at most a byte", 0, 0, 1},
                                {"aligned to 16", HEAP_CREATE_ALIGN_16, 0, 0},
                                {"checking tails", HEAP_TAIL_CHECKING_ENABLED, 0, 0},
                                {"checking frees", HEAP_FREE_CHECKING_ENABLED, 0, 0},
                                {"not coalescing", HEAP_DISABLE_COALESCE_ON_FREE, 0, 0},
                                {"of a class", 0x1000, 0, 0},
                                {"unknown flags", 0xF00000, 0, 0},
                                {"absurd maximum", 0, 0, kMost / 2}};

DWORD heap_count() { return GetProcessHeaps(0, nullptr); }

bool is_listed(HANDLE heap) {
  static HANDLE heaps[512];
  DWORD count = GetProcessHeaps(512, heaps);
  for (DWORD i = 0; i < count && i < 512; ++i)
    if (heaps[i] == heap) return true;
  return false;
}

constexpr DWORD kPatienceForMemory = 20000;

using contract::committed;

// What is free may stay for a while.
bool falls_to(size_t bytes) {
  for (DWORD waited = 0; committed() > bytes; waited += 100) {
    if (waited >= kPatienceForMemory) return false;
    Sleep(100);
  }
  return true;
}

void check_create(const Door& door, const Created& created) {
  Line line("%s create %s", door.name, created.name);
  DWORD before = heap_count();
  HANDLE heap = observed(line, [&] { return door.create(created.flags, created.initial, created.maximum); });
  if (heap == nullptr) {
    line.say(" null");
    return;
  }
  line.say(" heap, %+d%s", static_cast<int>(heap_count() - before), is_listed(heap) ? " listed" : "");
  void* block = observed(line, [&] { return door.alloc(heap, 0, 100); });
  line.say(block == nullptr ? " null" : " block");
  if (block != nullptr) {
    line.say(" size=%Iu", door.size(heap, 0, block));
    line.say(" valid=%d", door.validate(heap, 0, nullptr));
  }
  bool destroyed = observed(line, [&] { return door.destroy(heap); });
  line.say(destroyed ? " destroyed" : " left");
  line.say(", %+d%s", static_cast<int>(heap_count() - before), is_listed(heap) ? " listed" : "");
}

void tell_destroy(Line& line, const Door& door, HANDLE heap) {
  line.say(observed(line, [&] { return door.destroy(heap); }) ? " destroyed" : " refused");
}

}  // namespace

void check_create(const Door& door) {
  for (const Created& created : kCreated) check_create(door, created);
  {
    Line line("%s destroy null", door.name);
    tell_destroy(line, door, nullptr);
  }
  {
    Line line("%s destroy the process heap", door.name);
    tell_destroy(line, door, GetProcessHeap());
    void* block = HeapAlloc(GetProcessHeap(), 0, 100);
    line.say(block != nullptr && HeapFree(GetProcessHeap(), 0, block) ? " alive" : " DEAD");
  }
  Line line("%s the process heap", door.name);
  line.say(is_listed(GetProcessHeap()) ? " listed" : " not listed");
  HANDLE first = nullptr;
  DWORD count = observed(line, [&] { return GetProcessHeaps(1, &first); });
  line.say(count == heap_count() ? " told how many" : " told %lu", count);
  line.say(rtl.GetProcessHeaps(0, nullptr) == count ? " alike" : " UNLIKE");
}

// Fills a heap that has a maximum, and empties it again.
void check_maximum(const Door& door) {
  for (size_t maximum : {128 * kKiB, kMiB, 4 * kMiB}) {
    for (DWORD flags : {DWORD{0}, DWORD{HEAP_NO_SERIALIZE}}) {
      Line line("%s at most %Iu%s", door.name, maximum, name_of_flags(flags));
      Private heap(door, flags, maximum);
      Subject subject = {door, "", heap, Maker::system, maximum};
      for (int times = 0; times < 3; ++times) {
        size_t sum = 0;
        void* chain = nullptr;  // each block holds the address of the one before
        while (sum <= 2 * maximum) {
          auto* block = static_cast<void**>(subject.alloc(1000));
          if (block == nullptr) break;
          expect_maker(line, Maker::system, block);
          *block = chain;
          chain = block;
          sum += 1000;
        }
        line.say(sum > maximum ? " more" : sum >= maximum / 2 ? " filled" : " hardly filled");
        void* block = observed(line, [&] { return subject.alloc(1000); });
        line.say(block == nullptr ? " null" : " block");
        while (chain != nullptr) {
          void* before = *static_cast<void**>(chain);
          if (!subject.free(chain)) line.say(" NOT FREED");
          chain = before;
        }
      }
      void* block = observed(line, [&] { return subject.alloc(maximum + 1); });
      line.say(block == nullptr ? " null" : " block");
      block = observed(line, [&] { return subject.alloc(maximum / 4); });
      tell_block(line, subject, block);
      void* larger = observed(line, [&] { return door.realloc(heap, 0, block, maximum); });
      line.say(larger == nullptr ? " null" : " block");
    }
    Line line("%s at most %Iu raising", door.name, maximum);
    Private heap(door, HEAP_GENERATE_EXCEPTIONS, maximum);
    void* block = observed(line, [&] { return door.alloc(heap, 0, maximum + 1); });
    line.say(block == nullptr ? "" : " block");
  }
}

void check_executable(const Door& door) {
  for (bool executable : {true, false}) {
    Line line("%s %s heap", door.name, executable ? "executable" : "plain");
    Private heap(door, executable ? HEAP_CREATE_ENABLE_EXECUTE : 0);
    constexpr unsigned char kCode[] = {0xB8, 42, 0, 0, 0, 0xC3};  // mov eax, 42; ret
    for (size_t size : {size_t{16}, size_t{5000}, 2 * kMiB}) {
      void* code = door.alloc(heap, 0, size);
      memcpy(code, kCode, sizeof kCode);
      if (!executable) {
        MEMORY_BASIC_INFORMATION region = {};
        VirtualQuery(code, &region, sizeof region);
        line.say((region.Protect & 0xF0) == 0 ? " never" : " EXECUTABLE");
        continue;
      }
      expect_maker(line, Maker::system, code);
      FlushInstructionCache(GetCurrentProcess(), code, sizeof kCode);
      int result = 0;
      Raised raised = guarded([&] { result = reinterpret_cast<int (*)()>(code)(); });
      tell_effects(line, kUntouched, raised);
      line.say(" %d", result);
      code = door.realloc(heap, 0, code, size + 100);
      raised = guarded([&] { result += reinterpret_cast<int (*)()>(code)(); });
      tell_effects(line, kUntouched, raised);
      line.say(" %d", result);
    }
  }
}

static void check_many(const Door& door) {
  Line line("%s 300 heaps at a time", door.name);
  static HANDLE heaps[300];
  static void* blocks[300];
  DWORD before = heap_count();
  for (int i = 0; i < 300; ++i) {
    heaps[i] = door.create(0, 0, 0);
    blocks[i] = door.alloc(heaps[i], 0, 100);
    fill(blocks[i], 100, static_cast<unsigned>(i));
  }
  line.say(" %+d", static_cast<int>(heap_count() - before));
  bool right = true;
  for (int i = 299; i >= 0; --i)
    right = right && holds(blocks[i], 100, static_cast<unsigned>(i)) && door.destroy(heaps[i]);
  line.say(right ? " each has its own" : " MIXED UP");
  line.say(" %+d", static_cast<int>(heap_count() - before));
}

void check_destroy(const Door& door) {
  {
    Line line("%s destroy with blocks alive, many times", door.name);
    size_t before = committed();
    for (int times = 0; times < 60; ++times) {
      HANDLE heap = door.create(0, 0, 0);
      size_t made = 0;
      for (size_t size = 16; made < 40 * kMiB; size = size < 2 * kMiB ? size + size / 4 + 1 : 16) {
        void* block = door.alloc(heap, 0, size);
        if (block == nullptr) break;
        *static_cast<char*>(block) = 1;
        made += size;
      }
      if (made < 40 * kMiB) line.say(" OUT OF MEMORY");
      if (!door.destroy(heap)) line.say(" NOT DESTROYED");
    }
    line.say(falls_to(before + 20 * kMiB) ? " all came back" : " IT STAYS");
  }
  {
    Line line("%s destroy with one large block alive", door.name);
    HANDLE heap = door.create(0, 0, 0);
    void* block = door.alloc(heap, 0, 64 * kMiB);
    size_t before = committed();
    tell_destroy(line, door, heap);
    line.say(block != nullptr && falls_to(before - 32 * kMiB) ? " its memory went" : " ITS MEMORY STAYS");
  }
  {
    Line line("%s destroy in another thread", door.name);
    HANDLE heap = door.create(0, 0, 0);
    for (int i = 0; i < 1000; ++i) door.alloc(heap, 0, 100);
    bool destroyed = false;
    auto work = [&] { destroyed = door.destroy(heap); };
    { Thread thread(work); }
    line.say(destroyed ? " destroyed" : " left");
  }
  check_many(door);
  Line line("%s destroy while locked", door.name);
  HANDLE heap = door.create(0, 0, 0);
  door.alloc(heap, 0, 100);
  door.lock(heap);
  tell_destroy(line, door, heap);
}
