// Whoever the process acts for. Only in the shared library: the C library tells all its threads, which nobody can do
// in its place where it is linked statically.
#include <sys/types.h>

#include "entry/linux/alone.h"

RH_ALONE(int, setuid, (uid_t user), g_setuid.get()(user))
RH_ALONE(int, seteuid, (uid_t user), g_seteuid.get()(user))
RH_ALONE(int, setreuid, (uid_t real, uid_t effective), g_setreuid.get()(real, effective))
RH_ALONE(int, setresuid, (uid_t real, uid_t effective, uid_t saved),
         g_setresuid.get()(real, effective, saved))
RH_ALONE(int, setfsuid, (uid_t user), g_setfsuid.get()(user))
RH_ALONE(int, setgid, (gid_t group), g_setgid.get()(group))
RH_ALONE(int, setegid, (gid_t group), g_setegid.get()(group))
RH_ALONE(int, setregid, (gid_t real, gid_t effective), g_setregid.get()(real, effective))
RH_ALONE(int, setresgid, (gid_t real, gid_t effective, gid_t saved),
         g_setresgid.get()(real, effective, saved))
RH_ALONE(int, setfsgid, (gid_t group), g_setfsgid.get()(group))
RH_ALONE(int, setgroups, (size_t count, const gid_t* groups), g_setgroups.get()(count, groups))
RH_ALONE(int, initgroups, (const char* user, gid_t group), g_initgroups.get()(user, group))
