// The heaps of a Windows process.
#pragma once

#include <windows.h>

#include <span>

#include "blocks.h"

namespace heap_stress {

// HeapAlloc and its relatives.
class OsHeap final : public Heap {
 public:
  OsHeap(const char* name, HANDLE heap, DWORD flags = 0) : name_(name), heap_(heap), flags_(flags) {}
  HANDLE handle() const { return heap_; }

  const char* name() const override { return name_; }
  void* make(const Block& block, bool zeroed) override;
  void* resize(const Block& block, std::size_t size, bool zeroed) override;
  bool resize_in_place(const Block& block, std::size_t size) override;
  bool drop(const Block& block) override;
  std::size_t size_of(const Block& block) override;

 private:
  const char* const name_;
  const HANDLE heap_;
  const DWORD flags_;
};

// All that threads may share: the process heap, a private one, malloc, _aligned_malloc, LocalAlloc, movable GlobalAlloc
// and BSTR.
std::span<Heap* const> shared_heaps();

}  // namespace heap_stress
