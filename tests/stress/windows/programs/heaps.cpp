#include "heaps.h"

#include <malloc.h>
#include <oleauto.h>

#include <algorithm>

// Of the C runtime; MinGW's headers lack it.
extern "C" __declspec(dllimport) std::size_t _aligned_msize(void* block, std::size_t alignment, std::size_t offset);

namespace heap_stress {

// ---- HeapAlloc ---------------------------------------------------------------------------------

namespace {

DWORD zero_flag(bool zeroed) { return zeroed ? HEAP_ZERO_MEMORY : 0; }

}  // namespace

void* OsHeap::make(const Block& block, bool zeroed) { return HeapAlloc(heap_, flags_ | zero_flag(zeroed), block.size); }

void* OsHeap::resize(const Block& block, std::size_t size, bool zeroed) {
  return HeapReAlloc(heap_, flags_ | zero_flag(zeroed), block.handle, size);
}

bool OsHeap::resize_in_place(const Block& block, std::size_t size) {
  void* const same = HeapReAlloc(heap_, flags_ | HEAP_REALLOC_IN_PLACE_ONLY, block.handle, size);
  if (same && same != block.handle) fail("moved in place", block);
  return same != nullptr;
}

bool OsHeap::drop(const Block& block) { return HeapFree(heap_, flags_, block.handle); }
std::size_t OsHeap::size_of(const Block& block) { return HeapSize(heap_, flags_, block.handle); }

// ---- the others --------------------------------------------------------------------------------

namespace {

class CrtHeap final : public Heap {
 public:
  const char* name() const override { return "malloc"; }
  void* make(const Block& block, bool zeroed) override { return zeroed ? calloc(1, block.size) : malloc(block.size); }
  void* resize(const Block& block, std::size_t size, bool zeroed) override {
    return zeroed ? _recalloc(block.handle, 1, size) : realloc(block.handle, size);
  }
  bool drop(const Block& block) override {
    free(block.handle);
    return true;
  }
  std::size_t size_of(const Block& block) override { return _msize(block.handle); }
};

class AlignedCrtHeap final : public Heap {
 public:
  const char* name() const override { return "_aligned_malloc"; }
  std::size_t alignment(const Block& block) const override { return std::size_t{16} << block.seed % 9; }
  bool can_zero() const override { return false; }
  bool knows_exact_size() const override { return false; }
  void* make(const Block& block, bool) override { return _aligned_malloc(block.size, alignment(block)); }
  void* resize(const Block& block, std::size_t size, bool) override {
    return _aligned_realloc(block.handle, size, alignment(block));
  }
  bool drop(const Block& block) override {
    _aligned_free(block.handle);
    return true;
  }
  std::size_t size_of(const Block& block) override { return _aligned_msize(block.handle, alignment(block), 0); }
};

class LocalHeap final : public Heap {
 public:
  const char* name() const override { return "LocalAlloc"; }
  void* make(const Block& block, bool zeroed) override {
    return LocalAlloc(LMEM_FIXED | (zeroed ? LMEM_ZEROINIT : 0), block.size);
  }
  void* resize(const Block& block, std::size_t size, bool zeroed) override {
    return LocalReAlloc(block.handle, size, LMEM_MOVEABLE | (zeroed ? LMEM_ZEROINIT : 0));
  }
  bool drop(const Block& block) override { return LocalFree(block.handle) == nullptr; }
  std::size_t size_of(const Block& block) override { return LocalSize(block.handle); }
};

// Its blocks have handles that are no addresses: the process heap keeps a value and a flag for each.
class MovableHeap final : public Heap {
 public:
  const char* name() const override { return "movable GlobalAlloc"; }
  bool knows_exact_size() const override { return false; }
  void* make(const Block& block, bool zeroed) override {
    return GlobalAlloc(GMEM_MOVEABLE | (zeroed ? GMEM_ZEROINIT : 0), block.size);
  }
  void* resize(const Block& block, std::size_t size, bool zeroed) override {
    return GlobalReAlloc(block.handle, size, GMEM_MOVEABLE | (zeroed ? GMEM_ZEROINIT : 0));
  }
  bool drop(const Block& block) override { return GlobalFree(block.handle) == nullptr; }
  std::size_t size_of(const Block& block) override { return GlobalSize(block.handle); }
  void* hold(const Block& block) override { return GlobalLock(block.handle); }
  void let_go(const Block& block) override { GlobalUnlock(block.handle); }
};

class Strings final : public Heap {
 public:
  const char* name() const override { return "BSTR"; }
  std::size_t alignment(const Block&) const override { return sizeof(DWORD); }  // of the length before
  bool can_zero() const override { return false; }
  void* make(const Block& block, bool) override {
    return SysAllocStringByteLen(nullptr, static_cast<UINT>(block.size));
  }
  // The functions that resize take characters, so this is what programs do that have bytes.
  void* resize(const Block& block, std::size_t size, bool) override {
    const auto common = static_cast<UINT>(std::min(size, block.size));
    const BSTR text = SysAllocStringByteLen(nullptr, static_cast<UINT>(size));
    if (!text) return nullptr;
    __builtin_memcpy(text, block.handle, common);
    drop(block);
    return text;
  }
  bool drop(const Block& block) override {
    SysFreeString(static_cast<BSTR>(block.handle));
    return true;
  }
  std::size_t size_of(const Block& block) override { return SysStringByteLen(static_cast<BSTR>(block.handle)); }
};

}  // namespace

std::span<Heap* const> shared_heaps() {
  static OsHeap process("process heap", GetProcessHeap());
  static OsHeap shared("private heap", HeapCreate(0, 0, 0));
  static CrtHeap crt;
  static AlignedCrtHeap aligned;
  static LocalHeap local;
  static MovableHeap movable;
  static Strings strings;
  static Heap* const all[] = {&process, &shared, &crt, &aligned, &local, &movable, &strings};
  return all;
}

}  // namespace heap_stress
