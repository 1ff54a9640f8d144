// What programs built for the debug runtime call instead: kind, file and line of a call are ignored.
#include "entry/windows/names.h"

namespace crt = rh::crt;
using rh::g_own_host;

#define RH_CALLER int, const char*, int
#define RH_CALLER_ALIGNED const char*, int

RH_CRT(void*, _malloc_dbg, (size_t size, RH_CALLER), crt::malloc(g_own_host, size))
RH_CRT(void*, _calloc_dbg, (size_t count, size_t size, RH_CALLER), crt::calloc(g_own_host, count, size))
RH_CRT(void*, _realloc_dbg, (void* block, size_t size, RH_CALLER), crt::realloc(g_own_host, block, size))
RH_CRT(void*, _recalloc_dbg, (void* block, size_t count, size_t size, RH_CALLER),
       crt::recalloc(g_own_host, block, count, size))
RH_CRT(void*, _expand_dbg, (void* block, size_t size, RH_CALLER), crt::expand(g_own_host, block, size))
RH_CRT(void, _free_dbg, (void* block, int), crt::free(g_own_host, block))
RH_CRT(size_t, _msize_dbg, (void* block, int), crt::msize(g_own_host, block))
RH_CRT(void*, _aligned_malloc_dbg, (size_t size, size_t alignment, RH_CALLER_ALIGNED),
       crt::aligned_malloc(g_own_host, size, alignment))
RH_CRT(void*, _aligned_realloc_dbg, (void* block, size_t size, size_t alignment, RH_CALLER_ALIGNED),
       crt::aligned_realloc(g_own_host, block, size, alignment))
RH_CRT(void*, _aligned_recalloc_dbg, (void* block, size_t count, size_t size, size_t alignment, RH_CALLER_ALIGNED),
       crt::aligned_recalloc(g_own_host, block, count, size, alignment))
RH_CRT(void*, _aligned_offset_malloc_dbg, (size_t size, size_t alignment, size_t offset, RH_CALLER_ALIGNED),
       crt::aligned_offset_malloc(g_own_host, size, alignment, offset))
RH_CRT(void*, _aligned_offset_realloc_dbg,
       (void* block, size_t size, size_t alignment, size_t offset, RH_CALLER_ALIGNED),
       crt::aligned_offset_realloc(g_own_host, block, size, alignment, offset))
RH_CRT(void*, _aligned_offset_recalloc_dbg,
       (void* block, size_t count, size_t size, size_t alignment, size_t offset, RH_CALLER_ALIGNED),
       crt::aligned_offset_recalloc(g_own_host, block, count, size, alignment, offset))
RH_CRT(size_t, _aligned_msize_dbg, (void* block, size_t alignment, size_t offset),
       crt::aligned_msize(g_own_host, block, alignment, offset))
RH_CRT(void, _aligned_free_dbg, (void* block), crt::aligned_free(g_own_host, block))

// The rest of what Microsoft keeps in the same object: who defines some of it defines all. The debug heap's books do
// not exist here, so they are empty: nothing leaks, nothing is damaged, settings are kept and have no effect.
#if defined(_MSC_VER)
extern "C" {

int _crtDbgFlag = 0x01;
long _crtBreakAlloc = -1;
void* _pfnDumpClient = nullptr;
static void* g_hook = nullptr;

int* __p__crtDbgFlag() { return &_crtDbgFlag; }
long* __p__crtBreakAlloc() { return &_crtBreakAlloc; }
long _CrtSetBreakAlloc(long number) {
  const long old = _crtBreakAlloc;
  _crtBreakAlloc = number;
  return old;
}
int _CrtSetDbgFlag(int bits) {
  const int old = _crtDbgFlag;
  if (bits != -1) _crtDbgFlag = bits;
  return old;
}
void* _CrtGetAllocHook() { return g_hook; }
void* _CrtSetAllocHook(void* hook) {
  void* const old = g_hook;
  g_hook = hook;
  return old;
}
void* _CrtGetDumpClient() { return _pfnDumpClient; }
void* _CrtSetDumpClient(void* client) {
  void* const old = _pfnDumpClient;
  _pfnDumpClient = client;
  return old;
}
void _CrtSetDbgBlockType(void*, int) {}
int _CrtCheckMemory() { return 1; }
void _CrtDoForAllClientObjects(void (*)(void*, void*), void*) {}
int _CrtIsValidPointer(const void* pointer, unsigned, int) { return pointer != nullptr; }
int _CrtIsValidHeapPointer(const void* pointer) { return pointer != nullptr; }
int _CrtIsMemoryBlock(const void*, unsigned, long*, char**, int*) { return 0; }
int _CrtReportBlockType(const void*) { return -1; }
void _CrtMemCheckpoint(void* state) {  // _CrtMemState: a pointer and twelve sizes
  for (size_t i = 0; i < 13; ++i) static_cast<size_t*>(state)[i] = 0;
}
int _CrtMemDifference(void* state, const void*, const void*) {
  _CrtMemCheckpoint(state);
  return 0;
}
void _CrtMemDumpAllObjectsSince(const void*) {}
int _CrtDumpMemoryLeaks() { return 0; }
void _CrtMemDumpStatistics(const void*) {}
}
#endif
