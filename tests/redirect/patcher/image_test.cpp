// Reading a mapped DLL, against what the loader says about it.
#include "redirect/patcher/image.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <string>
#include <vector>

using rh::redirect::Image;
using rh::redirect::Range;

namespace {

struct Exports {
  explicit Exports(HMODULE module) {
    const auto* base = reinterpret_cast<const uint8_t*>(module);
    const auto* dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
    const auto* headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + dos->e_lfanew);
    const auto* table = reinterpret_cast<const IMAGE_EXPORT_DIRECTORY*>(
        base + headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_EXPORT].VirtualAddress);
    const auto* addresses = reinterpret_cast<const uint32_t*>(base + table->AddressOfNames);
    for (DWORD i = 0; i < table->NumberOfNames; ++i)
      names.push_back(reinterpret_cast<const char*>(base + addresses[i]));
  }
  std::vector<std::string> names;
};

TEST(image, finds_what_the_loader_finds) {
  for (const char* name : {"ntdll.dll", "kernel32.dll", "ucrtbase.dll", "msvcrt.dll"}) {
    HMODULE module = LoadLibraryA(name);
    ASSERT_NE(module, nullptr) << name;
    Image image(module);
    ASSERT_TRUE(image.valid());
    size_t functions = 0;
    for (const std::string& function : Exports(module).names) {
      const void* found = image.function(function.c_str());
      if (found == nullptr) continue;
      ++functions;
      ASSERT_EQ(found, reinterpret_cast<const void*>(GetProcAddress(module, function.c_str()))) << function;
      Range extent = image.extent(image.function(function.c_str()));
      ASSERT_TRUE(extent.holds(found)) << function;
      ASSERT_TRUE(image.whole().holds(extent.end - 1)) << function;
    }
    EXPECT_GT(functions, 300u) << name;
  }
}

TEST(image, knows_what_is_no_function_of_its_own) {
  HMODULE module = GetModuleHandleW(L"kernel32.dll");
  Image image(module);
  EXPECT_EQ(image.function("no such function"), nullptr);
  EXPECT_EQ(image.function(""), nullptr);
  EXPECT_EQ(image.function("zzzz"), nullptr);
  // Forwarded to ntdll: an address, but not in this image.
  ASSERT_NE(GetProcAddress(module, "HeapAlloc"), nullptr);
  EXPECT_EQ(image.function("HeapAlloc"), nullptr);
  // Data.
  HMODULE runtime = LoadLibraryW(L"msvcrt.dll");
  ASSERT_NE(GetProcAddress(runtime, "_acmdln"), nullptr);
  EXPECT_EQ(Image(runtime).function("_acmdln"), nullptr);
}

TEST(image, tells_what_is_no_image) {
  alignas(4096) static unsigned char page[4096] = {};
  EXPECT_FALSE(Image(page).valid());
}

}  // namespace
