// Callers of rh_free and its like have named no C runtime: for what is not ours the process's main one is asked.
#include "entry/foreign.h"

#include "entry/crt.h"
#include "redirect.h"

namespace rh::foreign {

using redirect::main_host;

void resolve() {}

void free(void* block) { crt::free(main_host(), block); }

void* reallocate(void* block, size_t size) { return crt::realloc(main_host(), block, size); }

size_t usable_size(const void* block) { return crt::msize(main_host(), const_cast<void*>(block)); }

void set_errno(int error) {
  if (main_host().errno_address != nullptr) *main_host().errno_address() = error;
}

}  // namespace rh::foreign
