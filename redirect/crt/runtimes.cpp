#include "runtimes.h"

namespace rh::redirect {

namespace {

// Without ".dll", with 'd' for the debug twin, and the twins that .NET and Store programs bring.
constexpr const char* kRuntimes[] = {
    "ucrtbase", "msvcrt",  "msvcr120", "msvcr110", "msvcr100", "msvcr90",
    "msvcr80",  "msvcr71", "msvcr70",  "msvcrt40", "msvcrt20", "crtdll",
};
constexpr const char* kSuffixes[] = {".dll", "d.dll", "_clr0400.dll", "_app.dll"};

wchar_t lower(wchar_t letter) {
  return letter >= L'A' && letter <= L'Z' ? static_cast<wchar_t>(letter - L'A' + L'a') : letter;
}

// Takes `prefix` off the front of the name.
bool skip(const wchar_t** name, const wchar_t* end, const char* prefix) {
  const wchar_t* here = *name;
  for (; *prefix != 0; ++prefix, ++here)
    if (here == end || lower(*here) != static_cast<wchar_t>(*prefix)) return false;
  *name = here;
  return true;
}

}  // namespace

bool is_runtime(const wchar_t* name, size_t length) {
  const wchar_t* end = name + length;
  for (const char* runtime : kRuntimes) {
    for (const char* suffix : kSuffixes) {
      const wchar_t* rest = name;
      if (skip(&rest, end, runtime) && skip(&rest, end, suffix) && rest == end) return true;
    }
  }
  return false;
}

}  // namespace rh::redirect
