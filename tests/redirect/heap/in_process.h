// A process into which reheap.dll comes, once a few blocks have been made.
#pragma once

#include <windows.h>

#include <gtest/gtest.h>

#include <string>

#include "comparison/exported.h"
#include "redirect/crt/redirect_report.h"
#include "reheap/reheap.h"

constexpr SIZE_T kFailed = static_cast<SIZE_T>(-1);

struct Reheap {
  Reheap() {
    early = HeapAlloc(GetProcessHeap(), 0, 100);
    early_heap = HeapCreate(0, 0, 0);
    module = LoadLibraryA(REHEAP_DLL);
    EXPECT_NE(module, nullptr);
    EXPECT_TRUE(find(module, "rh_owns", owns));
    EXPECT_TRUE(find(module, "rh_redirect_report", write_report));
  }

  std::string report() const {
    std::string text;
    write_report(
        [](const char* piece, size_t length, void* to) { static_cast<std::string*>(to)->append(piece, length); },
        &text);
    return text;
  }

  void* early;
  HANDLE early_heap;
  HMODULE module;
  bool (*owns)(const void*);
  decltype(&rh_redirect_report) write_report;
};

class HeapsTest : public testing::Test {
 protected:
  // What the last call said of its failure.
  DWORD error() {
    DWORD last = GetLastError();
    SetLastError(12345);
    return last;
  }

  void* make(HANDLE heap, SIZE_T size, DWORD flags = 0) {
    void* block = HeapAlloc(heap, flags, size);
    EXPECT_TRUE(reheap_.owns(block));
    return block;
  }

  Reheap reheap_;
  HANDLE process_ = GetProcessHeap();
};
