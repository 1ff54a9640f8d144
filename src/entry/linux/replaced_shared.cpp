// In the shared library: what the loader finds first, of all that the program consists of.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "entry/replaced.h"
#include "platform/linux/libc.h"

// Weak: musl has none, nor symbols that this is needed for.
extern "C" [[gnu::weak]] int dladdr1(const void*, Dl_info*, void**, int) RH_C_NOEXCEPT;

namespace std {
[[gnu::weak]] new_handler get_new_handler() noexcept;
}

namespace rh::operators {

namespace {

// A program that takes a function's address may have an entry of its table of calls stand for it, by the same name.
bool is_defined_there(const void* function) {
  constexpr int kSymbol = 1;  // RTLD_DL_SYMENT
  Dl_info module;
  void* symbol = nullptr;
  if (dladdr1 == nullptr || dladdr1(function, &module, &symbol, kSymbol) == 0 || symbol == nullptr) return true;
  return static_cast<const ElfW(Sym)*>(symbol)->st_shndx != SHN_UNDEF;
}

// While no thread can hold the loader's lock and wait for this one.
[[gnu::constructor]] void look_early() {
  if (std::get_new_handler != nullptr) find_replaced(Root::make);
}

}  // namespace

// As the program would find them: what a library finds that is linked with -Bsymbolic is its own.
RootsInUse roots_in_use() {
  RootsInUse in_use = {};
  void* program = dlopen(nullptr, RTLD_LAZY);
  for (unsigned at = 0; at < kRoots; ++at) {
    void* found = dlsym(program, kOurRoots[at].name);
    if (found == kOurRoots[at].function || is_defined_there(found)) in_use.functions[at] = found;
  }
  return in_use;
}

}  // namespace rh::operators
