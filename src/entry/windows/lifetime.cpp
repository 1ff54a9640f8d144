// The start and end of a library that is linked into a program or a DLL: a callback for thread-local storage is called
// by the loader before any initialiser of the module, for each thread that ends, and when the module goes.
#include "entry/lifetime.h"

#include "entry/copies.h"
#include "entry/start.h"
#include "hardened/hardened.h"
#include "heap/registry.h"
#include "platform/thread_slot.h"
#include "platform/windows/system.h"

extern "C" int atexit(void (*function)(void));

#if defined(__MINGW32__)
// GCC's C++ library has its own, where that is linked in. It frees a block that nobody would free else, so that the
// heap would stay: the reserve for exceptions. (A name that may be missing has no certain address in a DLL.)
namespace __gnu_cxx {
void __freeres();
[[gnu::weak]] void __freeres() {}
}  // namespace __gnu_cxx
#endif

namespace rh {
namespace {

// A DLL that is unloaded while the process goes on. Blocks of its own may live on with others: then the memory stays.
void leave() {
#if defined(__MINGW32__)
  __gnu_cxx::__freeres();
#endif
  copies::withdraw();
  platform::stop_helper();
  platform::forget_faults();
  platform::forget_probes();
  end();
  if constexpr (kHardened) hardened::flush_all();
  registry::release_unused();
  platform::forget_thread_words();
}

void NTAPI on_event(void*, DWORD reason, void* process_ends) {
  switch (reason) {
  case DLL_PROCESS_ATTACH:
    copies::announce();
    begin();
    break;
  case DLL_THREAD_DETACH: platform::note_thread_end(); break;
  case DLL_PROCESS_DETACH:
    if (process_ends != nullptr) end();
    break;
  }
}

bool in_program() {
  HMODULE module = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                     reinterpret_cast<const wchar_t*>(&leave), &module);
  return module == GetModuleHandleW(nullptr);
}

// A program's own end, as its C runtime knows it: not every system tells a program's callback of it. And a DLL's, after
// its DllMain and the destructors of its objects, which may still need the heap.
#if defined(__MINGW32__)
[[gnu::destructor(101)]]
#endif
void on_exit() {
  in_program() || platform::others_are_gone() ? end() : leave();
}

#if !defined(__MINGW32__)
// The runtime calls what lies between .CRT$XIA and .CRT$XIZ first of all; so this is called last.
int call_at_exit() { return atexit(on_exit); }
__attribute__((section(".CRT$XIY"), used)) int (*const g_call_at_exit)() = call_at_exit;
#endif

}  // namespace
}  // namespace rh

// The linker collects the callbacks between .CRT$XLA and .CRT$XLZ, and keeps them for whoever names _tls_used.
extern "C" {
extern const IMAGE_TLS_DIRECTORY _tls_used;
extern const PIMAGE_TLS_CALLBACK rh_tls_callback;
__attribute__((section(".CRT$XLB"), used)) const PIMAGE_TLS_CALLBACK rh_tls_callback = rh::on_event;
}

namespace rh::lifetime {

const void* anchor() { return &_tls_used; }

}  // namespace rh::lifetime
