// initgroups: within a shared C library it changes the groups past the function that stands in for setgroups.
#include <grp.h>

#include "entry/linux/alone.h"

#ifdef __GLIBC__  // as in credentials.cpp

static constinit rh::NextFunction<int(const char*, gid_t)> g_initgroups{"initgroups"};

// Statically linked, the C library's own is to be taken, which calls that function. It lies in one file with
// getgrouplist: that brings it, and it comes before a weak one.
[[gnu::used]] static int (*const brings_the_c_librarys)(const char*, gid_t, gid_t*, int*) = getgrouplist;

extern "C" [[gnu::weak, gnu::visibility("default")]] int initgroups(const char* user, gid_t group) {
  rh::idle::WithoutHelper alone;
  return g_initgroups.get()(user, group);
}

#endif
