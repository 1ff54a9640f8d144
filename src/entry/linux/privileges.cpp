// Sandboxes, name spaces, capabilities, and calls by number: what the C library hands to the kernel as it is.
#include "entry/linux/privileges.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/compiler.h"
#include "entry/linux/altered.h"
#include "entry/linux/kernel.h"
#include "entry/linux/sandbox.h"
#include "platform/linux/strict.h"

#define RH_EXPORT extern "C" [[gnu::visibility("default")]]

using namespace rh;

namespace {

// When a sandbox is closed, nobody makes a helper any more.
template <typename Call> auto close_sandbox(bool strict, Call call) {
  idle::WithoutHelper alone;
  auto result = call();
  if (result >= 0) {
    if (strict) platform::give_nothing_back();
    sandbox::note_closing();
    idle::do_without_helper();
  }
  return result;
}

}  // namespace

// Being called, it brings this file into programs that link the archive.
RH_AT_START void privileges::stand_in() {}

RH_ALONE(int, capset, (void* header, const void* data), next_or_kernel(g_capset, SYS_capset, header, data))
RH_ALONE(int, unshare, (int flags), next_or_kernel(g_unshare, SYS_unshare, flags))
RH_ALONE(int, setns, (int file, int kind), next_or_kernel(g_setns, SYS_setns, file, kind))

static constinit NextFunction<int(int, long, long, long, long)> g_prctl{"prctl"};

RH_EXPORT int prctl(int option, ...) {
  va_list given;
  va_start(given, option);
  long a = va_arg(given, long), b = va_arg(given, long), c = va_arg(given, long), d = va_arg(given, long);
  va_end(given);
  auto call = [=] { return next_or_kernel(g_prctl, SYS_prctl, option, a, b, c, d); };
  switch (option) {
  case PR_SET_SECCOMP: return close_sandbox(a == SECCOMP_MODE_STRICT, call);
  case PR_SET_NO_NEW_PRIVS:
  case PR_CAPBSET_DROP:
  case PR_SET_SECUREBITS:
  case PR_CAP_AMBIENT: {
    idle::WithoutHelper alone;
    return call();
  }
  default: return call();
  }
}

// The same, as 32-bit programs with 64-bit times (_TIME_BITS=64) name it.
#if defined(__GLIBC__) && __SIZEOF_POINTER__ == 4
RH_EXPORT [[gnu::alias("prctl")]] int __prctl_time64(int option, ...) RH_C_NOEXCEPT;
#endif

// What the C library has no function for, programs ask for by number.
#if !defined(__i386__)  // where a system call here has five arguments at most

static constinit NextFunction<long(long, long, long, long, long, long, long)> g_syscall{"syscall"};

static bool changes_rights(long number) {
  constexpr long kLandlockRestrictSelf = 446;
  constexpr long kNumbers[] = {SYS_setuid,   SYS_setreuid,  SYS_setresuid,        SYS_setfsuid,  SYS_setgid,
                               SYS_setregid, SYS_setresgid, SYS_setfsgid,         SYS_setgroups, SYS_capset,
                               SYS_unshare,  SYS_setns,     kLandlockRestrictSelf};
  for (long one : kNumbers)
    if (one == number) return true;
  return false;
}

RH_EXPORT long syscall(long number, ...) {
  va_list given;
  va_start(given, number);
  long a = va_arg(given, long), b = va_arg(given, long), c = va_arg(given, long), d = va_arg(given, long),
       e = va_arg(given, long), f = va_arg(given, long);
  va_end(given);
  auto call = [=]() -> long {
    if (auto* next = g_syscall.get()) return next(number, a, b, c, d, e, f);
    return with_errno(platform::system_call(number, a, b, c, d, e, f));
  };
  if (number == SYS_seccomp) return close_sandbox(a == SECCOMP_SET_MODE_STRICT, call);
  if (number == SYS_prctl && a == PR_SET_SECCOMP) return close_sandbox(b == SECCOMP_MODE_STRICT, call);
  altered::note_call(number, reinterpret_cast<const void*>(a), static_cast<size_t>(b), c, d);
  if (!changes_rights(number)) return call();
  idle::WithoutHelper alone;
  return call();
}

#endif
