#include "checks.h"

namespace {

char static_data[256];

// A private heap in which one block is named wrongly while others live: these must not suffer.
class Victim {
 public:
  explicit Victim(const Door& door) : door_(door), heap_(door) {
    for (size_t i = 0; i < kBlocks; ++i) {
      blocks_[i] = door.alloc(heap_, 0, size_of(i));
      fill(blocks_[i], size_of(i), static_cast<unsigned>(i));
    }
  }

  HANDLE heap() const { return heap_; }

  // The other blocks are whole, and what is handed out next lies in none of them, and not twice in one place.
  bool sound() const {
    void* fresh[2 * kBlocks];
    for (size_t i = 0; i < 2 * kBlocks; ++i) {
      fresh[i] = door_.alloc(heap_, 0, size_of(i % kBlocks));
      if (fresh[i] == nullptr) return false;
      fill(fresh[i], size_of(i % kBlocks), 77 + static_cast<unsigned>(i));
    }
    for (size_t i = 0; i < 2 * kBlocks; ++i)
      if (!holds(fresh[i], size_of(i % kBlocks), 77 + static_cast<unsigned>(i))) return false;
    for (size_t i = 0; i < kBlocks; ++i)
      if (!holds(blocks_[i], size_of(i), static_cast<unsigned>(i))) return false;
    return door_.validate(heap_, 0, nullptr);
  }

 private:
  static constexpr size_t kBlocks = 6;
  static size_t size_of(size_t index) {
    constexpr size_t kSizes[kBlocks] = {100, 100, 100, 5000, 100 * kKiB, kMiB};
    return kSizes[index];
  }

  const Door& door_;
  Private heap_;
  void* blocks_[kBlocks];
};

using MakePointer = void*(const Door& door, HANDLE heap);

void* freed(const Door& door, HANDLE heap, size_t size) {
  void* block = door.alloc(heap, 0, size);
  door.free(heap, 0, block);
  return block;
}

void* inside(const Door& door, HANDLE heap, size_t size, size_t offset) {
  auto* block = static_cast<char*>(door.alloc(heap, 0, size));
  fill(block, size, 9);
  return block + offset;
}

// Of another heap, which is left behind: it may have been asked to free the block.
void* foreign(const Door& door, size_t size) { return door.alloc(door.create(0, 0, 0), 0, size); }

char* pages(DWORD protection) {
  return static_cast<char*>(VirtualAlloc(nullptr, 65536, MEM_RESERVE | MEM_COMMIT, protection));
}

void* unmapped() {
  char* memory = pages(PAGE_READWRITE);
  VirtualFree(memory, 0, MEM_RELEASE);
  return memory + 4096;
}

struct BadPointer {
  const char* name;
  MakePointer* make;
};
constexpr BadPointer kBad[] = {
    {"freed 100", [](const Door& door, HANDLE heap) { return freed(door, heap, 100); }},
    {"freed 5000", [](const Door& door, HANDLE heap) { return freed(door, heap, 5000); }},
    {"freed 100k", [](const Door& door, HANDLE heap) { return freed(door, heap, 100 * kKiB); }},
    {"freed 3M", [](const Door& door, HANDLE heap) { return freed(door, heap, 3 * kMiB); }},
    {"inside 100 at 16", [](const Door& door, HANDLE heap) { return inside(door, heap, 100, 16); }},
    {"inside 100 at 1", [](const Door& door, HANDLE heap) { return inside(door, heap, 100, 1); }},
    {"inside 5000 at 4096", [](const Door& door, HANDLE heap) { return inside(door, heap, 5000, 4096); }},
    {"inside 100k at 65536", [](const Door& door, HANDLE heap) { return inside(door, heap, 100 * kKiB, 65536); }},
    {"inside 3M at 1M", [](const Door& door, HANDLE heap) { return inside(door, heap, 3 * kMiB, kMiB); }},
    {"behind 100", [](const Door& door, HANDLE heap) { return inside(door, heap, 100, 112); }},
    {"of another heap 100", [](const Door& door, HANDLE) { return foreign(door, 100); }},
    {"of another heap 3M", [](const Door& door, HANDLE) { return foreign(door, 3 * kMiB); }},
    {"of the process heap", [](const Door& door, HANDLE) { return door.alloc(GetProcessHeap(), 0, 100); }},
    {"static", [](const Door&, HANDLE) { return static_cast<void*>(static_data + 128); }},
    {"code", [](const Door&, HANDLE) { return reinterpret_cast<void*>(&check_bad_pointers); }},
    {"small number", [](const Door&, HANDLE) { return reinterpret_cast<void*>(uintptr_t{0x40}); }},
    {"a page", [](const Door&, HANDLE) { return static_cast<void*>(pages(PAGE_READWRITE) + 4096); }},
    {"a page's middle", [](const Door&, HANDLE) { return static_cast<void*>(pages(PAGE_READWRITE) + 4160); }},
    {"no access", [](const Door&, HANDLE) { return static_cast<void*>(pages(PAGE_NOACCESS) + 4096); }},
    {"unmapped", [](const Door&, HANDLE) { return unmapped(); }},
};

template <typename F> void check(const Door& door, const BadPointer& bad, const char* what, F call) {
  Victim victim(door);
  Line line("%s bad pointer %s: %s", door.name, bad.name, what);
  void* pointer = bad.make(door, victim.heap());
  call(line, victim.heap(), pointer);
  bool sound = false;
  Raised raised = guarded([&] { sound = victim.sound(); });
  tell_effects(line, kUntouched, raised);
  line.say(sound ? "" : " UNSOUND");
}

void check(const Door& door, const BadPointer& bad) {
  check(door, bad, "free", [&](Line& line, HANDLE heap, void* pointer) {
    line.say(" %d", observed(line, [&] { return door.free(heap, 0, pointer); }));
  });
  check(door, bad, "size", [&](Line& line, HANDLE heap, void* pointer) {
    size_t size = observed(line, [&] { return door.size(heap, 0, pointer); });
    line.say(size == kMost ? " none" : " %Iu", size);
  });
  check(door, bad, "realloc", [&](Line& line, HANDLE heap, void* pointer) {
    void* block = observed(line, [&] { return door.realloc(heap, 0, pointer, 200); });
    line.say(block == nullptr ? " null" : " block");
  });
  check(door, bad, "validate", [&](Line& line, HANDLE heap, void* pointer) {
    line.say(" %d", observed(line, [&] { return door.validate(heap, 0, pointer); }));
  });
}

}  // namespace

void check_bad_pointers(const Door& door) {
  for (const BadPointer& bad : kBad) check(door, bad);
  check(door, {"null", [](const Door&, HANDLE) -> void* { return nullptr; }});
}
