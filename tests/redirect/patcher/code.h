// Functions written by hand, byte by byte, as the patcher meets them.
#pragma once

#include <windows.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "redirect/patcher/range.h"

using Bytes = std::vector<uint8_t>;

constexpr bool k64 = sizeof(void*) == 8;

inline Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// mov eax, value; ret
inline Bytes returning(uint8_t value) { return {0xB8, value, 0, 0, 0, 0xC3}; }

inline Bytes no_operations(size_t count) { return Bytes(count, 0x90); }

// A page of code: what is given, padded with int3. It may not be written any more.
class Code {
 public:
  explicit Code(const Bytes& bytes, uintptr_t at = 0) {
    begin_ = static_cast<uint8_t*>(
        VirtualAlloc(reinterpret_cast<void*>(at), kSize, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
    memset(begin_, 0xCC, kSize);
    rewrite(bytes);
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { VirtualFree(begin_, 0, MEM_RELEASE); }

  void rewrite(const Bytes& bytes) {
    DWORD before;
    VirtualProtect(begin_, kSize, PAGE_READWRITE, &before);
    memcpy(begin_, bytes.data(), bytes.size());
    VirtualProtect(begin_, kSize, PAGE_EXECUTE_READ, &before);
    FlushInstructionCache(GetCurrentProcess(), begin_, kSize);
  }

  uint8_t* begin() const { return begin_; }
  Bytes head(size_t count) const { return Bytes(begin_, begin_ + count); }
  rh::redirect::Range range() const {
    uintptr_t address = reinterpret_cast<uintptr_t>(begin_);
    return {address, address + kSize};
  }

  int call(int argument = 0) const { return call(begin_, argument); }
  static int call(const uint8_t* code, int argument = 0) {
    return reinterpret_cast<int (*)(int)>(reinterpret_cast<uintptr_t>(code))(argument);
  }

 private:
  static constexpr size_t kSize = 4096;
  uint8_t* begin_;
};

inline DWORD protection_of(const void* address) {
  MEMORY_BASIC_INFORMATION region;
  VirtualQuery(address, &region, sizeof(region));
  return region.Protect;
}
