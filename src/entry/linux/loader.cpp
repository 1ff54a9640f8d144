// dlopen without RTLD_DEEPBIND. A library opened with that flag looks into its own dependencies first, the C library among
// them: its free is then the C library's, and gets blocks that the C library's strdup has from us. So the flag is taken
// away where malloc is ours.
//
// dlopen looks where its caller may look ($ORIGIN, DT_RUNPATH, the namespace), and tells the caller by the return
// address: so the C library's is jumped to, not called.
#include <dlfcn.h>

#include <atomic>

#include "entry/origin.h"

#define RH_EXPORT extern "C" [[gnu::visibility("default")]]

#if defined(__clang__)
#define RH_JUMP [[clang::musttail]] return
#else
#define RH_JUMP return  // with -O2, whatever the build (cmake/Libraries.cmake)
#endif

namespace {

using Open = void*(const char* file, int flags);
using OpenIn = void*(Lmid_t space, const char* file, int flags);

constinit std::atomic<Open*> g_open{nullptr};
constinit std::atomic<OpenIn*> g_open_in{nullptr};

template <typename Function>
Function* next(std::atomic<Function*>& kept, const char* name) {
  if (kept.load(std::memory_order_relaxed) == nullptr) {
    kept.store(reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name)), std::memory_order_relaxed);
  }
  return kept.load(std::memory_order_relaxed);
}

int allowed(int flags) {
  if ((flags & RTLD_DEEPBIND) == 0 || !rh::origin::serves_malloc()) return flags;
  return flags & ~RTLD_DEEPBIND;
}

}  // namespace

RH_EXPORT void* dlopen(const char* file, int flags) noexcept {
  flags = allowed(flags);
  RH_JUMP next(g_open, "dlopen")(file, flags);
}

// Another namespace has a C library of its own, whose malloc and free are a pair.
RH_EXPORT void* dlmopen(Lmid_t space, const char* file, int flags) noexcept {
  if (space == LM_ID_BASE) flags = allowed(flags);
  RH_JUMP next(g_open_in, "dlmopen")(space, file, flags);
}
