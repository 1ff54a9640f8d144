// The tables of runtimes, functions and families.
#include "redirect/crt/names.h"
#include "redirect/crt/runtimes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

using namespace rh::redirect;

namespace {

bool is_runtime(const std::wstring& name) { return rh::redirect::is_runtime(name.c_str(), name.size()); }

TEST(names, knows_the_runtimes) {
  for (const wchar_t* name :
       {L"ucrtbase.dll", L"UCRTBASE.DLL", L"ucrtbased.dll", L"ucrtbase_clr0400.dll", L"msvcrt.dll", L"msvcrtd.dll",
        L"msvcr70.dll", L"MSVCR71.dll", L"msvcr71d.dll", L"msvcr80.dll", L"msvcr90.dll", L"msvcr100.dll",
        L"msvcr110.dll", L"msvcr120.dll", L"msvcr120d.dll", L"msvcr120_clr0400.dll", L"msvcr120_app.dll"}) {
    EXPECT_TRUE(is_runtime(name)) << std::string(name, name + wcslen(name));
  }
}

TEST(names, knows_what_is_none) {
  for (const wchar_t* name : {L"", L".dll", L"ucrtbase", L"ucrtbase.dl", L"ucrtbase.dll.bak", L"xucrtbase.dll",
                              L"msvcp140.dll", L"vcruntime140.dll", L"msvcr12.dll", L"kernel32.dll", L"reheap.dll"}) {
    EXPECT_FALSE(is_runtime(name)) << std::string(name, name + wcslen(name));
  }
}

TEST(names, gives_every_role_a_family_and_a_name) {
  std::set<Role> named;
  std::set<std::string> names;
  for (const Export* entry = exports_begin(); entry != exports_end(); ++entry) {
    named.insert(entry->role);
    EXPECT_TRUE(names.insert(entry->name).second) << entry->name << " stands there twice";
  }
  EXPECT_EQ(named.size(), kRoles);
  EXPECT_EQ(family_of(Role::malloc), Family::base);
  EXPECT_EQ(family_of(Role::expand), Family::base);
  EXPECT_EQ(family_of(Role::aligned_malloc), Family::aligned);
  EXPECT_EQ(family_of(Role::aligned_offset_recalloc), Family::aligned);
  EXPECT_EQ(family_of(Role::malloc_dbg), Family::debug);
  EXPECT_EQ(family_of(Role::is_valid_heap_pointer), Family::debug);
  EXPECT_EQ(family_of(Role::heapmin), Family::heap);
  EXPECT_EQ(family_of(Role::operator_new), Family::operators);
  EXPECT_EQ(family_of(Role::operator_delete), Family::operators);
}

TEST(names, says_which_families_stand_together) {
  EXPECT_TRUE(stands_together(Family::base));
  EXPECT_TRUE(stands_together(Family::aligned));
  EXPECT_TRUE(stands_together(Family::debug));
  EXPECT_FALSE(stands_together(Family::heap));
  EXPECT_FALSE(stands_together(Family::operators));
}

}  // namespace
