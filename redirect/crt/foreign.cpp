// Callers of rh_free and its like have named no C runtime: for what is not ours the process's main one is asked.
#include "entry/foreign.h"

#include "entry/windows/crt.h"
#include "redirect.h"

namespace rh {

using redirect::main_host;

constinit const Foreign g_foreign = {
    .resolve = [] {},
    .free = [](void* block) { crt::free(main_host(), block); },
    .reallocate = [](void* block, size_t size) { return crt::realloc(main_host(), block, size); },
    .usable_size = [](void* block) { return crt::msize(main_host(), block); },
    .set_errno =
        [](int error) {
          if (main_host().errno_address != nullptr) *main_host().errno_address() = error;
        },
};

}  // namespace rh
