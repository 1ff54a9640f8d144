// The clock, bypassing the C library: a program may have interposed its own clock_gettime, and whatever that does (it
// may allocate) must not happen under our locks. The kernel's own function is in the vDSO, an image mapped into each
// process; without one the system call serves.
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <time.h>

#include <atomic>

#include "base/text.h"
#include "platform/linux/syscall.h"
#include "platform/platform.h"

namespace rh::platform {

namespace {

// As in the kernel's interface, whatever size the C library's time_t has.
struct KernelTime {
  long seconds, nanoseconds;
};

using GetTime = int(clockid_t clock, KernelTime* time);

#if defined(__aarch64__)
constexpr const char* kFunction = "__kernel_clock_gettime";
#else
constexpr const char* kFunction = "__vdso_clock_gettime";
#endif

int ask_kernel(clockid_t clock, KernelTime* time) {
  return static_cast<int>(system_call(SYS_clock_gettime, clock, reinterpret_cast<long>(time)));
}

class Image {
 public:
  explicit Image(uintptr_t start) {
    auto* header = reinterpret_cast<const ElfW(Ehdr)*>(start);
    auto* segments = reinterpret_cast<const ElfW(Phdr)*>(start + header->e_phoff);
    const ElfW(Phdr)* dynamic = nullptr;
    for (unsigned at = 0; at < header->e_phnum; ++at) {
      if (segments[at].p_type == PT_LOAD && segments[at].p_offset == 0) offset_ = start - segments[at].p_vaddr;
      if (segments[at].p_type == PT_DYNAMIC) dynamic = &segments[at];
    }
    if (dynamic == nullptr) return;
    auto* entry = reinterpret_cast<const ElfW(Dyn)*>(offset_ + dynamic->p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB) symbols_ = offset_ + entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRTAB) names_ = offset_ + entry->d_un.d_ptr;
    }
  }

  // The names follow the symbols directly, and so mark their end.
  uintptr_t function(const char* name) const {
    if (symbols_ == 0) return 0;
    auto* symbol = reinterpret_cast<const ElfW(Sym)*>(symbols_);
    for (; reinterpret_cast<uintptr_t>(symbol + 1) <= names_; ++symbol) {
      bool defined = symbol->st_shndx != SHN_UNDEF;
      if (defined && same_text(reinterpret_cast<const char*>(names_) + symbol->st_name, name))
        return offset_ + symbol->st_value;
    }
    return 0;
  }

 private:
  uintptr_t offset_ = 0, symbols_ = 0, names_ = 0;
};

GetTime* find_function() {
  uintptr_t start = getauxval(AT_SYSINFO_EHDR);
  uintptr_t function = start == 0 ? 0 : Image(start).function(kFunction);
  return function == 0 ? ask_kernel : reinterpret_cast<GetTime*>(function);
}

}  // namespace

uint64_t now_ms() {
  static constinit std::atomic<GetTime*> found{nullptr};
  GetTime* get_time = found.load(std::memory_order_relaxed);
  if (get_time == nullptr) found.store(get_time = find_function(), std::memory_order_relaxed);
  KernelTime now = {};
  get_time(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<uint64_t>(now.seconds) * 1000 + static_cast<uint64_t>(now.nanoseconds) / 1000000;
}

}  // namespace rh::platform
