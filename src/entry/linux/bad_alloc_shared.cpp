// For the shared library, which goes under C programs too and so links no C++ runtime: what is needed of one is taken
// from the process, weakly, and may be absent until a C++ library is loaded.
#include <dlfcn.h>

#include <new>

#include "entry/quietly.h"
#include "platform/report.h"

// The references to the runtime that the compiler makes by itself, for call_new_handler_quietly.
asm(".weak __gxx_personality_v0\n\t.weak __cxa_begin_catch\n\t.weak __cxa_end_catch\n\t.weak "
    "_Unwind_Resume\n\t.weak _ZSt9terminatev");

namespace std {
[[gnu::weak]] new_handler get_new_handler() noexcept;
[[gnu::weak, gnu::noreturn]] void __throw_bad_alloc();
}  // namespace std

namespace rh {

namespace {

// The runtimes, as they are called once loaded, and a function of each that throws std::bad_alloc when called with
// an argument no memory can satisfy.
struct Runtime {
  const char* library;
  const char* function;
};
constexpr Runtime kRuntimes[] = {
    {"libstdc++.so.6", "_ZSt17__throw_bad_allocv"},
    {"libc++abi.so.1", "_Znwm"},
    {"libc++.so.1", "_Znwm"},
};

void* find_in(const Runtime& runtime) {
  void* library = dlopen(runtime.library, RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : dlsym(library, runtime.function);
}

}  // namespace

void throw_bad_alloc() {
  if (std::__throw_bad_alloc != nullptr) std::__throw_bad_alloc();
  for (const Runtime& runtime : kRuntimes) {
    void* function = find_in(runtime);
    if (function == nullptr) continue;
    reinterpret_cast<void (*)(size_t)>(function)(static_cast<size_t>(-1) / 2);
  }
  Text message;
  fatal(message << "operator new is out of memory, and no C++ runtime is loaded to say so");
}

bool call_new_handler(std::size_t) {
  std::new_handler handler = std::get_new_handler != nullptr ? std::get_new_handler() : nullptr;
  if (handler != nullptr) handler();
  return handler != nullptr;
}

}  // namespace rh
