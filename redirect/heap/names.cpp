#include "names.h"

namespace rh::heaps {

namespace {

// In the order of the roles.
constexpr Export kExports[] = {
    {"RtlAllocateHeap", true},      {"RtlReAllocateHeap", true},    {"RtlFreeHeap", true},
    {"RtlSizeHeap", true},          {"RtlCreateHeap", true},        {"RtlDestroyHeap", true},
    {"RtlValidateHeap", true},      {"RtlWalkHeap", true},          {"RtlCompactHeap", true},
    {"RtlLockHeap", true},          {"RtlUnlockHeap", true},        {"RtlGetUserInfoHeap", false},
    {"RtlSetUserValueHeap", false}, {"RtlSetUserFlagsHeap", false}, {"RtlMultipleAllocateHeap", false},
    {"RtlMultipleFreeHeap", false},
};
static_assert(sizeof(kExports) / sizeof(kExports[0]) == kRoles);

}  // namespace

const Export& export_of(Role role) { return kExports[static_cast<size_t>(role)]; }

}  // namespace rh::heaps
