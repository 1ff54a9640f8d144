// Address space and pages, by Mach's calls: unlike mmap and its like they give what went wrong, and leave errno alone.
//
// Memory goes back by being mapped anew over itself. Of what madvise has here MADV_DONTNEED frees nothing, MADV_FREE
// leaves the memory counted as the process's until somebody wants it, and MADV_FREE_REUSABLE makes what it held
// neither kept nor zero. docs/design/macos.md says more.
#include <mach/mach_init.h>
#include <mach/vm_map.h>
#include <mach/vm_statistics.h>

#include "base/sanitizers.h"
#include "platform/memory_tags.h"
#include "platform/platform.h"

namespace rh::platform {

namespace {

constexpr vm_prot_t kNone = VM_PROT_NONE, kUsable = VM_PROT_READ | VM_PROT_WRITE;

// By this number vmmap and its like tell ours from others': the first of those that are for programs.
constexpr int kOurs = VM_MAKE_TAG(VM_MEMORY_APPLICATION_SPECIFIC_1);

// At `*address` or, with VM_FLAGS_ANYWHERE, at a multiple of `alignment`. As memory of malloc's it may come to be
// protected in any way.
kern_return_t map(uintptr_t* address, size_t size, size_t alignment, int flags, vm_prot_t protection,
                  vm_inherit_t inherit = VM_INHERIT_COPY) {
  return vm_map(mach_task_self(), address, size, alignment - 1, flags | kOurs, MEMORY_OBJECT_NULL, 0, FALSE, protection,
                VM_PROT_ALL, inherit);
}

// Fresh memory in the place of what is there, in one step: nobody else can settle in between.
bool map_over(uintptr_t address, size_t size, vm_prot_t protection) {
  return map(&address, size, page_size(), VM_FLAGS_FIXED | VM_FLAGS_OVERWRITE, protection) == KERN_SUCCESS;
}

bool protect(uintptr_t address, size_t size, vm_prot_t protection) {
  return vm_protect(mach_task_self(), address, size, FALSE, protection) == KERN_SUCCESS;
}

}  // namespace

Reserve reserve_at(uintptr_t address, size_t size) {
  count_os_call(OsCall::reserve);
  kern_return_t result = map(&address, size, page_size(), VM_FLAGS_FIXED, kNone);
  if (result == KERN_SUCCESS) return Reserve::done;
  return result == KERN_RESOURCE_SHORTAGE ? Reserve::refused : Reserve::occupied;
}

uintptr_t reserve(size_t size, size_t alignment) {
  count_os_call(OsCall::reserve);
  uintptr_t address = 0;
  if (alignment < page_size()) alignment = page_size();
  return map(&address, size, alignment, VM_FLAGS_ANYWHERE, kNone) == KERN_SUCCESS ? address : 0;
}

void release(uintptr_t address, size_t size) {
  count_os_call(OsCall::release);
  vm_deallocate(mach_task_self(), address, size);
}

bool commit(uintptr_t address, size_t size) {
  count_os_call(OsCall::commit);
  return protect(address, size, kUsable);
}

bool replace_by_zeros(uintptr_t address, size_t size) {
  count_os_call(OsCall::purge);
  return map_over(address, size, kUsable);
}

Purged purge(uintptr_t address, size_t size) { return replace_by_zeros(address, size) ? Purged::zero : Purged::kept; }

// No number of mappings is set to a process here, so that none has its price.
bool guard(uintptr_t address, size_t size, GuardPrice) {
  count_os_call(OsCall::guard);
  return map_over(address, size, kNone);
}

bool unguard(uintptr_t address, size_t size) {
  count_os_call(OsCall::guard);
  return protect(address, size, kUsable);
}

bool bar(uintptr_t address, size_t size) {
  count_os_call(OsCall::guard);
  return protect(address, size, kNone);
}

bool unbar(uintptr_t address, size_t size) { return unguard(address, size); }

void prefer_huge(uintptr_t, size_t) {}

// Its superpages are had when memory is mapped alone, and on Intel's processors.
bool can_prefer_huge() { return false; }

void prefer_small(uintptr_t, size_t) {}

// The kernel can share pages with another place, not move them.
Moved move_pages(uintptr_t, uintptr_t, size_t) { return Moved::refused; }

bool renew(uintptr_t address, size_t size) {
  count_os_call(OsCall::reserve);
  return map_over(address, size, kNone);
}

std::atomic<uint32_t>* make_shared_counter() {
  count_os_call(OsCall::reserve);
  uintptr_t address = 0;
  kern_return_t result = map(&address, page_size(), page_size(), VM_FLAGS_ANYWHERE, kUsable, VM_INHERIT_SHARE);
  return result == KERN_SUCCESS ? reinterpret_cast<std::atomic<uint32_t>*>(address) : nullptr;
}

// Sanitizers keep most of the address space for their shadow.
bool places_freely() { return !RH_SHADOW_SANITIZER; }

// Its library is not looked for here.
bool is_under_thread_sanitizer() { return false; }

void begin_tags(TagChecks) {}

}  // namespace rh::platform
