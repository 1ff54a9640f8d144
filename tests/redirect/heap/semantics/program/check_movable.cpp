#include "checks.h"

namespace {

// LocalAlloc and GlobalAlloc: the same functions but for the names, and flags that mean the same.
struct Family {
  const char* name;
  HANDLE(WINAPI* alloc)(UINT flags, SIZE_T size);
  HANDLE(WINAPI* realloc)(HANDLE handle, SIZE_T size, UINT flags);
  HANDLE(WINAPI* free)(HANDLE handle);
  void*(WINAPI* lock)(HANDLE handle);
  BOOL(WINAPI* unlock)(HANDLE handle);
  HANDLE(WINAPI* handle)(const void* block);
  UINT(WINAPI* flags)(HANDLE handle);
  SIZE_T(WINAPI* size)(HANDLE handle);
};

constexpr Family kFamilies[] = {
    {"Local", LocalAlloc, LocalReAlloc, LocalFree, LocalLock, LocalUnlock, LocalHandle, LocalFlags, LocalSize},
    {"Global", GlobalAlloc, GlobalReAlloc, GlobalFree, GlobalLock, GlobalUnlock, GlobalHandle, GlobalFlags,
     GlobalSize}};

constexpr UINT kFixed = LMEM_FIXED, kMovable = LMEM_MOVEABLE, kZero = LMEM_ZEROINIT, kDiscardable = GMEM_DISCARDABLE,
               kModify = LMEM_MODIFY;

const char* name_of(UINT flags) {
  switch (flags) {
  case kFixed: return "fixed";
  case kFixed | kZero: return "fixed zero";
  case kMovable: return "movable";
  case kMovable | kZero: return "movable zero";
  case kMovable | kDiscardable: return "discardable";
  default: return "other";
  }
}

void tell(Line& line, const Family& family, HANDLE handle) {
  line.say(" size=%Iu", observed(line, [&] { return family.size(handle); }));
  line.say(" flags=%x", observed(line, [&] { return family.flags(handle); }));
}

// Locks twice and unlocks three times.
void check_locks(Line& line, const Family& family, HANDLE handle, bool fixed) {
  void* block = observed(line, [&] { return family.lock(handle); });
  line.say(block == nullptr ? " null" : block == handle ? " itself" : " elsewhere");
  if (block == nullptr) return;
  if (!is_aligned(block)) line.say(" misaligned");
  line.say(observed(line, [&] { return family.lock(handle); }) == block ? "" : " MOVED");
  line.say(observed(line, [&] { return family.handle(block); }) == handle ? " found" : " not found");
  line.say(" flags=%x", family.flags(handle));
  for (int times = 0; times < (fixed ? 1 : 3); ++times)
    line.say(" unlocked=%d", observed(line, [&] { return family.unlock(handle); }));
}

void check(const Family& family, UINT flags, size_t size) {
  bool fixed = (flags & kMovable) == 0;
  Line line("%sAlloc %s %Iu", family.name, name_of(flags), size);
  HANDLE handle = observed(line, [&] { return family.alloc(flags, size); });
  if (handle == nullptr) {
    line.say(" null");
    return;
  }
  tell(line, family, handle);
  check_locks(line, family, handle, fixed);
  void* block = family.lock(handle);
  if (block != nullptr) {
    if ((flags & kZero) != 0 && !all_zero(block, 0, size)) line.say(" NOT ZERO");
    fill(block, size, 1);
    family.unlock(handle);
  }
  size_t exact = family.size(handle);  // Wine gives a fixed block of no bytes one
  HANDLE larger = observed(line, [&] { return family.realloc(handle, size + 5000, kMovable | kZero); });
  line.say(larger == nullptr ? " not resized" : larger == handle && !fixed ? " same handle" : " resized");
  if (larger != nullptr) handle = larger;
  tell(line, family, handle);
  block = family.lock(handle);
  if (block != nullptr && larger != nullptr) {
    if (!holds(block, size, 1)) line.say(" NOT KEPT");
    if (!all_zero(block, exact, size + 5000)) line.say(" NOT ZERO");
  }
  if (block != nullptr) family.unlock(handle);
  HANDLE smaller = observed(line, [&] { return family.realloc(handle, size / 2, kMovable); });
  if (smaller != nullptr) handle = smaller;
  line.say(" smaller");
  tell(line, family, handle);
  HANDLE left = observed(line, [&] { return family.free(handle); });
  line.say(left == nullptr ? " freed" : " not freed");
}

// Fixed blocks are resized without being moved, or not at all.
void check_fixed_in_place(const Family& family, size_t from, size_t to) {
  Line line("%sReAlloc fixed %Iu to %Iu in place", family.name, from, to);
  HANDLE block = family.alloc(kFixed, from);
  fill(block, from, 2);
  SetLastError(kUntouched);
  HANDLE resized = family.realloc(block, to, kZero);
  DWORD error = GetLastError();
  bool right =
      resized == nullptr ? to > from && error == ERROR_NOT_ENOUGH_MEMORY : resized == block && family.size(block) == to;
  if (right)
    line.say(to > from ? " grown or left" : " shrunk");
  else
    line.say(" %s error=%lu size=%Iu", resized == nullptr ? "null" : "MOVED", error, family.size(block));
  if (!holds(block, lesser(from, to), 2)) line.say(" NOT KEPT");
  line.say(family.free(block) == nullptr ? "" : " not freed");
}

void check_discard(const Family& family) {
  Line line("%sDiscard", family.name);
  HANDLE handle = family.alloc(kMovable | kDiscardable, 1000);
  HANDLE discarded = observed(line, [&] { return family.realloc(handle, 0, kMovable); });
  line.say(discarded == handle ? " same handle" : discarded == nullptr ? " null" : " other");
  tell(line, family, handle);
  line.say(family.lock(handle) == nullptr ? " no block" : " block");
  HANDLE again = observed(line, [&] { return family.realloc(handle, 100, kMovable | kZero); });
  line.say(again == handle ? " back" : again == nullptr ? " null" : " other");
  tell(line, family, handle);
  line.say(family.free(handle) == nullptr ? " freed" : " not freed");
}

void check_modify(const Family& family, UINT flags) {
  Line line("%sReAlloc modify %s", family.name, name_of(flags));
  HANDLE handle = family.alloc(flags, 100);
  HANDLE modified = observed(line, [&] { return family.realloc(handle, 0, kModify | kMovable); });
  line.say(modified == nullptr ? " null" : modified == handle ? " same" : " other");
  if (modified != nullptr) handle = modified;
  tell(line, family, handle);
  line.say(family.free(handle) == nullptr ? " freed" : " not freed");
}

void check_many(const Family& family) {
  Line line("%s 2000 movable blocks", family.name);
  static HANDLE handles[2000];
  for (unsigned i = 0; i < 2000; ++i) {
    handles[i] = family.alloc(kMovable, i + 1);
    fill(family.lock(handles[i]), i + 1, i);
    family.unlock(handles[i]);
  }
  bool right = true;
  for (unsigned i = 0; i < 2000; i += 3) handles[i] = family.realloc(handles[i], 2 * i + 2, kMovable);
  for (unsigned i = 0; i < 2000; ++i) {
    right = right && holds(family.lock(handles[i]), i + 1, i);
    family.unlock(handles[i]);
    right = right && family.free(handles[i]) == nullptr;
  }
  line.say(right ? " right" : " WRONG");
}

void check_wrong(const Family& family) {
  {
    Line line("%sFree null", family.name);
    line.say(observed(line, [&] { return family.free(nullptr); }) == nullptr ? " null" : " something");
  }
  {
    Line line("%sSize and %sFlags of null", family.name, family.name);
    line.say(" %Iu", observed(line, [&] { return family.size(nullptr); }));
    line.say(" %x", observed(line, [&] { return family.flags(nullptr); }));
  }
  {
    Line line("%sLock null", family.name);
    line.say(observed(line, [&] { return family.lock(nullptr); }) == nullptr ? " null" : " block");
    line.say(" %d", observed(line, [&] { return family.unlock(nullptr); }));
  }
  {
    Line line("%sReAlloc null", family.name);
    line.say(observed(line, [&] { return family.realloc(nullptr, 100, kMovable); }) == nullptr ? " null" : " block");
  }
  for (const Huge& huge : kHuge) {
    for (UINT flags : {kFixed, kMovable, kMovable | kZero}) {
      Line line("%sAlloc %s %s", family.name, name_of(flags), huge.name);
      line.say(observed(line, [&] { return family.alloc(flags, huge.size); }) == nullptr ? " null" : " block");
      HANDLE handle = family.alloc(flags, 100);
      line.say(observed(line, [&] { return family.realloc(handle, huge.size, kMovable); }) == nullptr ? " null"
                                                                                                      : " block");
      tell(line, family, handle);
      family.free(handle);
    }
  }
}

}  // namespace

void check_movable() {
  for (const Family& family : kFamilies) {
    for (UINT flags : {kFixed, kFixed | kZero, kMovable, kMovable | kZero, kMovable | kDiscardable})
      for (size_t size :
           {size_t{0}, size_t{1}, size_t{16}, size_t{100}, size_t{1000}, size_t{5000}, 100 * kKiB, 2 * kMiB})
        check(family, flags, size);
    for (size_t from : {size_t{16}, size_t{100}, size_t{5000}, 100 * kKiB}) {
      check_fixed_in_place(family, from, from + 1);
      check_fixed_in_place(family, from, 3 * from);
      check_fixed_in_place(family, from, from / 2);
    }
    check_discard(family);
    check_modify(family, kFixed);
    check_modify(family, kMovable);
    check_many(family);
    check_wrong(family);
  }
  {
    Line line("LocalAlloc freed by GlobalFree and HeapFree");
    line.say(observed(line, [&] { return GlobalFree(LocalAlloc(kFixed, 100)); }) == nullptr ? " freed" : " not freed");
    line.say(" %d", observed(line, [&] { return HeapFree(GetProcessHeap(), 0, LocalAlloc(kFixed, 100)); }));
  }
  Line line("HeapAlloc freed by LocalFree");
  HANDLE block = HeapAlloc(GetProcessHeap(), 0, 100);
  line.say(" size=%Iu", observed(line, [&] { return LocalSize(block); }));
  line.say(observed(line, [&] { return LocalFree(block); }) == nullptr ? " freed" : " not freed");
}
