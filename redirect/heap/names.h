// What is replaced in ntdll, as data. All of them or none: each may be given any block, and a block of ours means
// nothing to the heap that was there before.
//
// Left as they are, on purpose: RtlQueryHeapInformation, RtlSetHeapInformation, RtlZeroHeap, RtlGetProcessHeaps and
// what counts or summarises heaps. They speak of the heap that every handle still has, and stay right about it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::heaps {

enum class Role : uint8_t {
  allocate,
  reallocate,
  free,
  size,
  create,
  destroy,
  validate,
  walk,
  compact,
  lock,
  unlock,
  get_user_info,
  set_user_value,
  set_user_flags,
  multiple_allocate,
  multiple_free,
  count
};

inline constexpr size_t kRoles = static_cast<size_t>(Role::count);

struct Export {
  const char* name;
  bool required;  // the others are not in every system
};

const Export& export_of(Role role);

}  // namespace rh::heaps
