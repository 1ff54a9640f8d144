// Whoever the process acts for. The C library tells all threads it knows of; the helper thread is none of these.
#include <sys/syscall.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "entry/linux/kernel.h"
#include "entry/linux/privileges.h"

#ifdef __GLIBC__  // others make it known to all threads in ways of their own

// glibc's way to have every thread make a call that the kernel takes as the caller's alone. Programs that are linked
// statically have it once they make threads, and no next function that could be found.
struct xid_command {
  int number;
  unsigned long ids[3];
  int threads;
  int error;
};
extern "C" [[gnu::weak]] int __nptl_setxid(xid_command* command);

using namespace rh;

namespace {

constexpr unsigned kSame = ~0u;

template <typename... Ids> int in_all_threads(long number, Ids... ids) {
  xid_command command = {static_cast<int>(number), {static_cast<unsigned long>(as_word(ids))...}, 0, 0};
  if (__nptl_setxid != nullptr) return __nptl_setxid(&command);
  return static_cast<int>(with_errno(platform::system_call(number, as_word(ids)...)));
}

int set_effective(long number, unsigned id) {
  if (id != kSame) return in_all_threads(number, kSame, id, kSame);
  errno = EINVAL;
  return -1;
}

}  // namespace

#ifdef SYS_setuid32  // without it, numbers of 16 bits are another call's
#define RH_NUMBER(name) SYS_##name##32
#else
#define RH_NUMBER(name) SYS_##name
#endif

#define RH_NEXT_OR(otherwise, name, parameters, ...) \
  RH_ALONE(int, name, parameters, g_##name.get() != nullptr ? g_##name.get()(__VA_ARGS__) : otherwise)

#define RH_IDENTITY(name, parameters, ...) \
  RH_NEXT_OR(in_all_threads(RH_NUMBER(name), __VA_ARGS__), name, parameters, __VA_ARGS__)

RH_IDENTITY(setuid, (uid_t user), user)
RH_IDENTITY(setreuid, (uid_t real, uid_t effective), real, effective)
RH_IDENTITY(setresuid, (uid_t real, uid_t effective, uid_t saved), real, effective, saved)
RH_IDENTITY(setgid, (gid_t group), group)
RH_IDENTITY(setregid, (gid_t real, gid_t effective), real, effective)
RH_IDENTITY(setresgid, (gid_t real, gid_t effective, gid_t saved), real, effective, saved)
RH_IDENTITY(setgroups, (size_t count, const gid_t* groups), count, groups)
RH_NEXT_OR(set_effective(RH_NUMBER(setresuid), user), seteuid, (uid_t user), user)
RH_NEXT_OR(set_effective(RH_NUMBER(setresgid), group), setegid, (gid_t group), group)

// Of the calling thread alone.
RH_ALONE(int, setfsuid, (uid_t user), next_or_kernel(g_setfsuid, RH_NUMBER(setfsuid), user))
RH_ALONE(int, setfsgid, (gid_t group), next_or_kernel(g_setfsgid, RH_NUMBER(setfsgid), group))

// Those that a signal handler may call are looked up before there is one.
RH_AT_START void credentials::stand_in() {
  g_setuid.look_up();
  g_setgid.look_up();
}

#else

void rh::credentials::stand_in() {}

#endif
