#include "platform/memory_tags.h"

#include <sys/auxv.h>
#include <sys/prctl.h>

#include "platform/linux/syscall.h"
#include "platform/platform.h"

namespace rh::platform {

#if defined(__aarch64__) && defined(RH_HARDENED)

constinit bool g_has_tags = false;

namespace {

// As the kernel names them; the C library's headers may be older.
constexpr unsigned long kProcessorHasTags = 1ul << 18;  // HWCAP2_MTE
constexpr long kSetControl = 55, kGetControl = 56;      // PR_SET_TAGGED_ADDR_CTRL
constexpr long kTaggedAddresses = 1;                    // system calls take them
constexpr long kSync = 1 << 1, kAsync = 1 << 2;         // which accesses are checked, and how
constexpr long kTagsByLot = 0xffffl << 3;               // which tags IRG may choose
constexpr long kAllButZero = 0xfffel << 3;

}  // namespace

void begin_tags(TagChecks checks) {
  if (checks == TagChecks::off || (getauxval(AT_HWCAP2) & kProcessorHasTags) == 0 || !is_single_threaded()) return;
  long control = system_call(SYS_prctl, kGetControl, 0, 0, 0, 0);
  if (is_error(control)) return;
  if ((control & (kSync | kAsync)) == 0) control |= checks == TagChecks::sync ? kSync : kAsync;
  if ((control & kTagsByLot) == 0) control |= kAllButZero;
  g_has_tags = !is_error(system_call(SYS_prctl, kSetControl, control | kTaggedAddresses, 0, 0, 0));
}

#else

void begin_tags(TagChecks) {}

#endif

}  // namespace rh::platform
