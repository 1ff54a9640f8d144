// To QEMU each page of a mapping is work: the space of the fake platform is taken before tests/support/apart.cpp forks.
#include "platform/fake/fake.h"

namespace {

[[maybe_unused]] const uintptr_t g_space_start = rh::fake::space_start();

}  // namespace
