#include "names.h"

namespace rh::redirect {

namespace {

struct Families {
  Role last;
  Family family;
};

// The roles stand in this order in the enumeration.
constexpr Families kFamilyOfRoles[] = {
    {Role::expand, Family::base},
    {Role::aligned_offset_recalloc, Family::aligned},
    {Role::is_valid_heap_pointer, Family::debug},
    {Role::heapmin, Family::heap},
    {Role::operator_delete, Family::operators},
};

constexpr const char* kFamilyNames[] = {"base", "aligned", "debug", "heap", "operators"};
static_assert(sizeof(kFamilyNames) / sizeof(kFamilyNames[0]) == kFamilies);

constexpr Export kExports[] = {
    {"_malloc_base", Role::malloc, true},
    {"malloc", Role::malloc, false},
    {"_calloc_base", Role::calloc, true},
    {"calloc", Role::calloc, false},
    {"_realloc_base", Role::realloc, true},
    {"realloc", Role::realloc, false},
    {"_free_base", Role::free, true},
    {"free", Role::free, false},
    {"_recalloc_base", Role::recalloc, true},
    {"_recalloc", Role::recalloc, false},
    {"_msize_base", Role::msize, true},
    {"_msize", Role::msize, false},
    {"_expand_base", Role::expand, true},
    {"_expand", Role::expand, false},

    {"_aligned_malloc", Role::aligned_malloc, false},
    {"_aligned_free", Role::aligned_free, false},
    {"_aligned_realloc", Role::aligned_realloc, false},
    {"_aligned_recalloc", Role::aligned_recalloc, false},
    {"_aligned_msize", Role::aligned_msize, false},
    {"_aligned_offset_malloc", Role::aligned_offset_malloc, false},
    {"_aligned_offset_realloc", Role::aligned_offset_realloc, false},
    {"_aligned_offset_recalloc", Role::aligned_offset_recalloc, false},

    {"_malloc_dbg", Role::malloc_dbg, false},
    {"_calloc_dbg", Role::calloc_dbg, false},
    {"_realloc_dbg", Role::realloc_dbg, false},
    {"_free_dbg", Role::free_dbg, false},
    {"_recalloc_dbg", Role::recalloc_dbg, false},
    {"_msize_dbg", Role::msize_dbg, false},
    {"_expand_dbg", Role::expand_dbg, false},
    {"_aligned_malloc_dbg", Role::aligned_malloc_dbg, false},
    {"_aligned_free_dbg", Role::aligned_free_dbg, false},
    {"_aligned_realloc_dbg", Role::aligned_realloc_dbg, false},
    {"_aligned_recalloc_dbg", Role::aligned_recalloc_dbg, false},
    {"_aligned_msize_dbg", Role::aligned_msize_dbg, false},
    {"_aligned_offset_malloc_dbg", Role::aligned_offset_malloc_dbg, false},
    {"_aligned_offset_realloc_dbg", Role::aligned_offset_realloc_dbg, false},
    {"_aligned_offset_recalloc_dbg", Role::aligned_offset_recalloc_dbg, false},
    {"_CrtIsValidHeapPointer", Role::is_valid_heap_pointer, false},

    {"_heapmin", Role::heapmin, false},

// Decorated by the types: size_t is an unsigned int (I) or an unsigned __int64 (_K), and pointers to 64 bits have an E.
#if defined(__i386__)
    {"??2@YAPAXI@Z", Role::operator_new, false},
    {"??_U@YAPAXI@Z", Role::operator_new, false},
    {"??2@YAPAXIABUnothrow_t@std@@@Z", Role::operator_new_nothrow, false},
    {"??_U@YAPAXIABUnothrow_t@std@@@Z", Role::operator_new_nothrow, false},
    {"??2@YAPAXIHPBDH@Z", Role::operator_new_debug, false},
    {"??_U@YAPAXIHPBDH@Z", Role::operator_new_debug, false},
    {"??3@YAXPAX@Z", Role::operator_delete, false},
    {"??_V@YAXPAX@Z", Role::operator_delete, false},
    {"??3@YAXPAXI@Z", Role::operator_delete, false},
    {"??_V@YAXPAXI@Z", Role::operator_delete, false},
    {"??3@YAXPAXABUnothrow_t@std@@@Z", Role::operator_delete, false},
    {"??_V@YAXPAXABUnothrow_t@std@@@Z", Role::operator_delete, false},
    {"??3@YAXPAXHPBDH@Z", Role::operator_delete, false},
    {"??_V@YAXPAXHPBDH@Z", Role::operator_delete, false},
#else
    {"??2@YAPEAX_K@Z", Role::operator_new, false},
    {"??_U@YAPEAX_K@Z", Role::operator_new, false},
    {"??2@YAPEAX_KAEBUnothrow_t@std@@@Z", Role::operator_new_nothrow, false},
    {"??_U@YAPEAX_KAEBUnothrow_t@std@@@Z", Role::operator_new_nothrow, false},
    {"??2@YAPEAX_KHPEBDH@Z", Role::operator_new_debug, false},
    {"??_U@YAPEAX_KHPEBDH@Z", Role::operator_new_debug, false},
    {"??3@YAXPEAX@Z", Role::operator_delete, false},
    {"??_V@YAXPEAX@Z", Role::operator_delete, false},
    {"??3@YAXPEAX_K@Z", Role::operator_delete, false},
    {"??_V@YAXPEAX_K@Z", Role::operator_delete, false},
    {"??3@YAXPEAXAEBUnothrow_t@std@@@Z", Role::operator_delete, false},
    {"??_V@YAXPEAXAEBUnothrow_t@std@@@Z", Role::operator_delete, false},
    {"??3@YAXPEAXHPEBDH@Z", Role::operator_delete, false},
    {"??_V@YAXPEAXHPEBDH@Z", Role::operator_delete, false},
#endif
};

}  // namespace

Family family_of(Role role) {
  for (const Families& entry : kFamilyOfRoles)
    if (role <= entry.last) return entry.family;
  return Family::count;
}

const char* name_of(Family family) { return kFamilyNames[static_cast<size_t>(family)]; }

bool stands_together(Family family) {
  return family == Family::base || family == Family::aligned || family == Family::debug;
}

const Export* exports_begin() { return kExports; }
const Export* exports_end() { return kExports + sizeof(kExports) / sizeof(kExports[0]); }

}  // namespace rh::redirect
