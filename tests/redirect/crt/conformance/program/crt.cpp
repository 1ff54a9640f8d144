#include "crt.h"

#include "comparison/exported.h"
#include "comparison/guard.h"
#include "comparison/line.h"

Crt crt;

namespace {

// "malloc" of the `_o_` twins is "_o_malloc", "_msize" is "_o__msize"; of the `_base` twins they are
// "_malloc_base" and "_msize_base".
FARPROC find(const Twins& twins, const char* name) {
  char full[80];
  char* end = full;
  auto append = [&end](const char* text) {
    while (*text != 0) *end++ = *text++;
  };
  bool underscore_there = twins.suffix[0] != 0 && name[0] == '_';
  append(underscore_there ? "" : twins.prefix);
  append(name);
  append(twins.suffix);
  *end = 0;
  return GetProcAddress(crt.module, full);
}

template <typename F> void set(F*& member, FARPROC found) {
  member = reinterpret_cast<F*>(reinterpret_cast<void*>(found));
}

#define CRT_FIND(member, name, result, parameters) set(twins.member, find(twins, name));
void load(Twins& twins, const char* prefix, const char* suffix) {
  twins.prefix = prefix;
  twins.suffix = suffix;
  CRT_ALLOCATION(CRT_FIND)
}

// What C++ names are called in a CRT for 32-bit programs.
FARPROC find_common(const char* name) {
  FARPROC found = GetProcAddress(crt.module, name);
  if (found != nullptr || name[0] != '?') return found;
  struct {
    const char *name64, *name32;
  } constexpr kNames[] = {{"??2@YAPEAX_K@Z", "??2@YAPAXI@Z"},
                          {"??_U@YAPEAX_K@Z", "??_U@YAPAXI@Z"},
                          {"??3@YAXPEAX@Z", "??3@YAXPAX@Z"},
                          {"??_V@YAXPEAX@Z", "??_V@YAXPAX@Z"},
                          {"?_set_new_handler@@YAP6AH_K@ZP6AH0@Z@Z", "?_set_new_handler@@YAP6AHI@ZP6AHI@Z@Z"}};
  for (auto [name64, name32] : kNames)
    if (lstrcmpA(name, name64) == 0) return GetProcAddress(crt.module, name32);
  return nullptr;
}

// msvcrt has these by their C++ names; the `_base` twins have none.
void load_new_handling() {
  Twins& plain = crt.plain;
  if (plain.set_new_mode == nullptr) set(plain.set_new_mode, find_common("?_set_new_mode@@YAHH@Z"));
  if (plain.query_new_mode == nullptr) set(plain.query_new_mode, find_common("?_query_new_mode@@YAHXZ"));
  if (plain.set_new_handler == nullptr)
    set(plain.set_new_handler, find_common("?_set_new_handler@@YAP6AH_K@ZP6AH0@Z@Z"));
  crt.base.errno_address = plain.errno_address;
  crt.base.set_invalid_parameter_handler = plain.set_invalid_parameter_handler;
  crt.base.set_new_mode = plain.set_new_mode;
  crt.base.query_new_mode = plain.query_new_mode;
  crt.base.set_new_handler = plain.set_new_handler;
}

// Wine has some functions by name alone.
void drop_unimplemented(Twins& twins) {
  if (twins.aligned_recalloc == nullptr) return;
  Line line("%s_aligned_recalloc", twins.prefix);
  void* block = nullptr;
  DWORD code = guarded([&] { block = twins.aligned_recalloc(nullptr, 1, 1, 16); }).code;
  line.say(code == 0 ? " implemented" : " not implemented");
  if (code == 0)
    twins.aligned_free(block);
  else
    twins.aligned_recalloc = nullptr, twins.offset_recalloc = nullptr;
}

constexpr int kErrnoUntouched = 7777;

const Twins* watched = &crt.plain;
int invalid_parameters;
int new_handler_calls;
int new_handler_successes;

void __cdecl count_invalid_parameter(const wchar_t*, const wchar_t*, const wchar_t*, unsigned, uintptr_t) {
  invalid_parameters++;
}

const VS_FIXEDFILEINFO* file_version() {
  HRSRC resource = FindResourceA(crt.module, MAKEINTRESOURCEA(1), MAKEINTRESOURCEA(16));
  if (resource == nullptr) return nullptr;
  const DWORD* words = static_cast<const DWORD*>(LockResource(LoadResource(crt.module, resource)));
  for (DWORD i = 0; i < SizeofResource(crt.module, resource) / sizeof(DWORD); i++)
    if (words[i] == 0xFEEF04BD) return reinterpret_cast<const VS_FIXEDFILEINFO*>(words + i);
  return nullptr;
}

}  // namespace

// Wine marks its own DLLs in the header of the image.
bool made_by_wine() {
  constexpr char kMark[] = "Wine builtin DLL";
  const char* at = reinterpret_cast<const char*>(crt.module) + 0x40;
  for (size_t i = 0; i < sizeof kMark; i++)
    if (at[i] != kMark[i]) return false;
  return true;
}

bool load_crt(const char* path) {
  crt.module = LoadLibraryA(path);
  if (crt.module == nullptr) return false;
  load(crt.plain, "", "");
  load(crt.o, "_o_", "");
  load(crt.base, "_", "_base");
#define CRT_FIND_COMMON(member, name, result, parameters) set(crt.member, find_common(name));
  CRT_COMMON(CRT_FIND_COMMON)
  load_new_handling();
  install_guard();
  drop_unimplemented(crt.plain);
  drop_unimplemented(crt.o);
  return crt.plain.malloc != nullptr && crt.plain.errno_address != nullptr;
}

void print_identity() {
  Line line("crt");
  line.say(" made by %s,", made_by_wine() ? "Wine" : "Microsoft");
  const VS_FIXEDFILEINFO* version = file_version();
  if (version == nullptr) {
    line.say(" no version");
    return;
  }
  line.say(" version %lu.%lu.%lu", version->dwFileVersionMS >> 16, version->dwFileVersionMS & 0xffff,
           version->dwFileVersionLS >> 16);
}

void watch(const Twins& twins) {
  watched = twins.errno_address != nullptr ? &twins : &crt.plain;
  if (watched->set_invalid_parameter_handler != nullptr)
    watched->set_invalid_parameter_handler(count_invalid_parameter);
}

void forget_side_effects() {
  *watched->errno_address() = kErrnoUntouched;
  invalid_parameters = 0;
  new_handler_calls = 0;
}

void tell_side_effects(Line& line) {
  int error = *watched->errno_address();
  if (error != kErrnoUntouched) line.say(" errno=%d", error);
  if (invalid_parameters != 0) line.say(" invalid-parameter=%d", invalid_parameters);
  if (new_handler_calls != 0) line.say(" new-handler=%d", new_handler_calls);
  forget_side_effects();
}

void new_handler_succeeds(int times) { new_handler_successes = times; }

int __cdecl new_handler(size_t) {
  new_handler_calls++;
  return new_handler_successes-- > 0 ? 1 : 0;
}
