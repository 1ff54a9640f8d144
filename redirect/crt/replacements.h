// How a class of functions becomes the replacements: reheap.dll's own (hosts.cpp), and those of others who give the
// runtimes' functions another body.
#pragma once

#include <utility>

#include "hosts.h"

namespace rh::redirect {

template <typename Function>
const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
}

// The static function of that class which takes the role; NULL for the roles that a debug runtime has besides.
template <typename Functions>
const void* plain_replacement(Role role) {
  switch (role) {
  case Role::malloc:
    return address_of(Functions::malloc);
  case Role::calloc:
    return address_of(Functions::calloc);
  case Role::realloc:
    return address_of(Functions::realloc);
  case Role::free:
    return address_of(Functions::free);
  case Role::recalloc:
    return address_of(Functions::recalloc);
  case Role::msize:
    return address_of(Functions::msize);
  case Role::expand:
    return address_of(Functions::expand);
  case Role::aligned_malloc:
    return address_of(Functions::aligned_malloc);
  case Role::aligned_free:
    return address_of(Functions::aligned_free);
  case Role::aligned_realloc:
    return address_of(Functions::aligned_realloc);
  case Role::aligned_recalloc:
    return address_of(Functions::aligned_recalloc);
  case Role::aligned_msize:
    return address_of(Functions::aligned_msize);
  case Role::aligned_offset_malloc:
    return address_of(Functions::aligned_offset_malloc);
  case Role::aligned_offset_realloc:
    return address_of(Functions::aligned_offset_realloc);
  case Role::aligned_offset_recalloc:
    return address_of(Functions::aligned_offset_recalloc);
  case Role::heapmin:
    return address_of(Functions::heapmin);
  case Role::operator_new:
    return address_of(Functions::operator_new);
  case Role::operator_new_nothrow:
    return address_of(Functions::operator_new_nothrow);
  case Role::operator_delete:
    return address_of(Functions::operator_delete);
  case Role::malloc_dbg:
  case Role::calloc_dbg:
  case Role::realloc_dbg:
  case Role::free_dbg:
  case Role::recalloc_dbg:
  case Role::msize_dbg:
  case Role::expand_dbg:
  case Role::aligned_malloc_dbg:
  case Role::aligned_free_dbg:
  case Role::aligned_realloc_dbg:
  case Role::aligned_recalloc_dbg:
  case Role::aligned_msize_dbg:
  case Role::aligned_offset_malloc_dbg:
  case Role::aligned_offset_realloc_dbg:
  case Role::aligned_offset_recalloc_dbg:
  case Role::is_valid_heap_pointer:
  case Role::operator_new_debug:
  case Role::count:
    break;
  }
  return nullptr;
}

// Calls `act` with a Functions<slot>, for a slot that is known at run time only.
template <template <unsigned> typename Functions, typename Act, unsigned... kNumbers>
void with_functions(unsigned slot, const Act& act, std::integer_sequence<unsigned, kNumbers...>) {
  ((slot == kNumbers ? act(Functions<kNumbers>()) : void()), ...);
}

template <template <unsigned> typename Functions, typename Act>
void with_functions(unsigned slot, const Act& act) {
  with_functions<Functions>(slot, act, std::make_integer_sequence<unsigned, kSlots>());
}

template <template <unsigned> typename Functions>
const void* replacement_of(unsigned slot, Role role) {
  const void* found = nullptr;
  with_functions<Functions>(slot, [&](auto functions) { found = functions.of(role); });
  return found;
}

}  // namespace rh::redirect
