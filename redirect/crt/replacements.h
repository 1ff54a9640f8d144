// How a class of functions becomes the replacements: reheap.dll's own (own_functions.cpp), and those of others who give
// the runtimes' functions another body.
#pragma once

#include <utility>

#include "hosts.h"

namespace rh::redirect {

template <typename Function> const void* address_of(Function* function) {
  return reinterpret_cast<const void*>(function);
}

// The static function of that class which takes the role; NULL for the roles that a debug runtime has besides.
template <typename Functions> const void* plain_replacement(Role role) {
  // In the order of the roles.
  const void* const base_and_aligned[] = {
      address_of(Functions::malloc),
      address_of(Functions::calloc),
      address_of(Functions::realloc),
      address_of(Functions::free),
      address_of(Functions::recalloc),
      address_of(Functions::msize),
      address_of(Functions::expand),
      address_of(Functions::aligned_malloc),
      address_of(Functions::aligned_free),
      address_of(Functions::aligned_realloc),
      address_of(Functions::aligned_recalloc),
      address_of(Functions::aligned_msize),
      address_of(Functions::aligned_offset_malloc),
      address_of(Functions::aligned_offset_realloc),
      address_of(Functions::aligned_offset_recalloc),
  };
  constexpr auto kFirstOfDebug = static_cast<size_t>(Role::malloc_dbg);
  static_assert(sizeof(base_and_aligned) / sizeof(base_and_aligned[0]) == kFirstOfDebug);
  if (role < Role::malloc_dbg) return base_and_aligned[static_cast<size_t>(role)];
  if (role == Role::heapmin) return address_of(Functions::heapmin);
  if (role == Role::operator_new) return address_of(Functions::operator_new);
  if (role == Role::operator_new_nothrow) return address_of(Functions::operator_new_nothrow);
  return role == Role::operator_delete ? address_of(Functions::operator_delete) : nullptr;
}

// Calls `act` with a Functions<slot>, for a slot that is known at run time only.
template <template <unsigned> typename Functions, typename Act, unsigned... kNumbers>
void with_functions(unsigned slot, const Act& act, std::integer_sequence<unsigned, kNumbers...>) {
  ((slot == kNumbers ? act(Functions<kNumbers>()) : void()), ...);
}

template <template <unsigned> typename Functions, typename Act> void with_functions(unsigned slot, const Act& act) {
  with_functions<Functions>(slot, act, std::make_integer_sequence<unsigned, kSlots>());
}

template <template <unsigned> typename Functions> const void* replacement_of(unsigned slot, Role role) {
  const void* found = nullptr;
  with_functions<Functions>(slot, [&](auto functions) { found = functions.of(role); });
  return found;
}

}  // namespace rh::redirect
