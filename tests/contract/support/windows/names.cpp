#include "support/names.h"

#include <malloc.h>
#include <windows.h>

#include <cstdlib>

#include "support/library.h"
#include "support/process.h"
#include "support/scenario.h"

namespace contract {
namespace {

const Maker plain[] = {
    {"malloc", [](std::size_t size) { return malloc(size); }},
    {"calloc(1, n)", [](std::size_t size) { return calloc(opaque<std::size_t>(1), size); }},
    {"calloc(n, 1)", [](std::size_t size) { return calloc(size, opaque<std::size_t>(1)); }},
    {"realloc(NULL, n)", [](std::size_t size) { return realloc(opaque<void*>(nullptr), size); }},
#ifdef _UCRT
    {"_recalloc(NULL, n, 1)", [](std::size_t size) { return _recalloc(nullptr, size, opaque<std::size_t>(1)); }},
#endif
};

const AlignedMaker aligned[] = {
    {"_aligned_malloc", [](std::size_t alignment, std::size_t size) { return _aligned_malloc(size, alignment); },
     [](void* block, std::size_t alignment, std::size_t size) { return _aligned_realloc(block, size, alignment); },
     [](void* block) { _aligned_free(block); }},
    {"_aligned_offset_malloc",
     [](std::size_t alignment, std::size_t size) { return _aligned_offset_malloc(size, alignment, 0); },
     [](void* block, std::size_t alignment, std::size_t size) {
       return _aligned_offset_realloc(block, size, alignment, 0);
     },
     [](void* block) { _aligned_free(block); }},
};

// The functions of the C runtime's DLL, whichever library serves the names in the program.
template <class Function> Function* of_c_library(const char* name) {
#ifdef _UCRT
  static const HMODULE library = GetModuleHandleA("ucrtbase.dll");
#else
  static const HMODULE library = GetModuleHandleA("msvcrt.dll");
#endif
  NEED(library);
  auto* found = reinterpret_cast<Function*>(reinterpret_cast<void*>(GetProcAddress(library, name)));
  NEED(found, "%s", name);
  return found;
}

void* make_foreign(std::size_t size) {
  static auto* const make = of_c_library<void*(std::size_t)>("malloc");
  return make(size);
}

void* make_foreign_zeroed(std::size_t size) {
  static auto* const make = of_c_library<void*(std::size_t, std::size_t)>("calloc");
  return make(1, size);
}

void* make_foreign_aligned(std::size_t alignment, std::size_t size) {
  static auto* const make = of_c_library<void*(std::size_t, std::size_t)>("_aligned_malloc");
  return make(size, alignment);
}

const Maker foreign[] = {{"malloc", make_foreign}, {"calloc", make_foreign_zeroed}};
const AlignedMaker foreign_aligned[] = {{"_aligned_malloc", make_foreign_aligned, aligned[0].resize, aligned[0].drop}};

}  // namespace

std::span<const Maker> makers() { return plain; }
std::span<const AlignedMaker> aligned_makers() { return aligned; }
std::size_t usable(void* block) { return block ? _msize(block) : 0; }

#ifdef _UCRT
void* resize_array(void* block, std::size_t count, std::size_t size) { return _recalloc(block, count, size); }
#else
void* resize_array(void* block, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = static_cast<std::size_t>(-1);
  return realloc(block, bytes);
}
#endif

// Wine's own runtime is not.
bool c_library_is_strict() { return !GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version"); }
bool runtime_is_strict() { return on_reheap() || c_library_is_strict(); }

std::span<const Maker> foreign_makers() { return foreign; }
std::span<const AlignedMaker> foreign_aligned_makers() { return foreign_aligned; }
void free_foreign(void* block) {
  static auto* const drop = of_c_library<void(void*)>("free");
  drop(block);
}

const bool kMovesPages = false;
const bool kReallocFrees = true;

}  // namespace contract
