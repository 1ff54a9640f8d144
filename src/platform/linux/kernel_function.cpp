#include "platform/linux/kernel_function.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

#include "base/text.h"

namespace rh::platform {

namespace {

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

}  // namespace

uintptr_t find_function(uintptr_t image, const char* name) { return Image(image).function(name); }

uintptr_t find_kernel_function(const char* name) {
  int before = errno;
  uintptr_t start = getauxval(AT_SYSINFO_EHDR);
  errno = before;  // written where there is no vDSO; free, which looks for the clock, leaves it alone
  return start == 0 ? 0 : find_function(start, name);
}

}  // namespace rh::platform
