#include "settings.h"

#include <windows.h>

namespace recorder {
namespace {

constinit Settings g_settings{};

constexpr wchar_t kSuffix[] = L".rht";
constexpr unsigned kSuffixLength = 4;
constexpr unsigned kRoomForNumbers = 24;

// Its length; 0 when it is not set, or does not fit.
unsigned variable(const wchar_t* name, wchar_t* to, unsigned room) {
  const DWORD length = GetEnvironmentVariableW(name, to, room);
  if (length < room) return length;
  to[0] = 0;
  return 0;
}

uint64_t number(const wchar_t* digits) {
  uint64_t value = 0;
  for (; *digits >= L'0' && *digits <= L'9'; ++digits) value = value * 10 + static_cast<uint64_t>(*digits - L'0');
  return value;
}

uint32_t layers(const wchar_t* name) {
  if (lstrcmpW(name, L"crt") == 0) return trace::kRuntimes;
  return lstrcmpW(name, L"heap") == 0 ? trace::kSystemHeap : trace::kRuntimes | trace::kSystemHeap;
}

wchar_t* append(wchar_t* at, const wchar_t* text) {
  while (*text != 0) *at++ = *text++;
  return at;
}

wchar_t* append_number(wchar_t* at, unsigned long value) {
  wchar_t digits[kRoomForNumbers], *first = digits + kRoomForNumbers - 1;
  *first = 0;
  do *--first = static_cast<wchar_t>(L'0' + value % 10);
  while ((value /= 10) != 0);
  return append(append(at, L"."), first);
}

}  // namespace

void read_settings() {
  variable(L"REHEAP_RECORD", g_settings.path, kLongestPath - 2 * kRoomForNumbers);
  wchar_t text[32];
  g_settings.limit = variable(L"REHEAP_RECORD_LIMIT", text, 32) != 0 ? number(text) : 0;
  if (g_settings.limit == 0) g_settings.limit = UINT64_MAX;
  g_settings.children = variable(L"REHEAP_RECORD_CHILDREN", text, 32) == 0 || lstrcmpW(text, L"0") != 0;
  variable(L"REHEAP_RECORD_LAYERS", text, 32);
  g_settings.layers = layers(text);
}

const Settings& settings() { return g_settings; }

void name_of_child(wchar_t (&name)[kLongestPath], const wchar_t* path, unsigned long process, unsigned count) {
  wchar_t* at = append(name, path);
  const bool suffixed = at - name > kSuffixLength && lstrcmpiW(path + (at - name) - kSuffixLength, kSuffix) == 0;
  if (suffixed) at -= kSuffixLength;
  at = append_number(at, process);
  if (count != 0) at = append_number(at, count);
  if (suffixed) at = append(at, kSuffix);
  *at = 0;
}

}  // namespace recorder
