// Functions that return a block which the caller frees.
#include "checks.h"

namespace {

constexpr char kText[] = "forty-two characters that are to be copied";
constexpr wchar_t kWideText[] = L"forty-two characters that are to be copied";

bool same(const char* one, const char* other) { return lstrcmpA(one, other) == 0; }
bool same(const wchar_t* one, const wchar_t* other) { return lstrcmpW(one, other) == 0; }
size_t bytes(const char* text) { return static_cast<size_t>(lstrlenA(text)) + 1; }
size_t bytes(const wchar_t* text) { return (static_cast<size_t>(lstrlenW(text)) + 1) * 2; }

// The text is in a block that can be measured, resized and freed like any other.
template <typename Char> void tell_text(const Twins& twins, const char* name, Char* text, const Char* expected) {
  Line line("%s%s", twins.prefix, name);
  if (text == nullptr) {
    line.say(" null");
    return;
  }
  if (expected != nullptr) line.say(same(text, expected) ? " right" : " WRONG");
  size_t length = bytes(text);
  size_t size = exact_size(twins, text);
  line.say(" msize=%Iu", size);
  if (size < length) line.say(" TOO SMALL");
  tell_served(name, text);
  unsigned char first = static_cast<unsigned char>(*text);
  char* grown = static_cast<char*>(twins.realloc(text, size + 5000));
  line.say(static_cast<unsigned char>(*grown) == first ? " resized" : " LOST");
  twins.free(grown);
}

void check_duplicates(const Twins& twins) {
  if (twins.strdup != nullptr) {
    tell_text(twins, "_strdup", twins.strdup(kText), kText);
    tell_text(twins, "_strdup empty", twins.strdup(""), "");
    Line line("%s_strdup(null)", twins.prefix);
    line.say(twins.strdup(nullptr) == nullptr ? " null" : " BLOCK");
  }
  if (twins.wcsdup != nullptr) tell_text(twins, "_wcsdup", twins.wcsdup(kWideText), kWideText);
  if (twins.mbsdup != nullptr) {
    auto* copy = twins.mbsdup(reinterpret_cast<const unsigned char*>(kText));
    tell_text(twins, "_mbsdup", reinterpret_cast<char*>(copy), kText);
  }
}

void check_environment(const Twins& twins) {
  if (twins.putenv != nullptr) twins.putenv("REHEAP_CONFORMANCE=value");
  if (twins.dupenv != nullptr) {
    char* value = nullptr;
    size_t size = 0;
    Line("%s_dupenv_s", twins.prefix).say(" %d", twins.dupenv(&value, &size, "REHEAP_CONFORMANCE"));
    tell_text<char>(twins, "_dupenv_s", value, "value");
    Line line("%s_dupenv_s of what is not set", twins.prefix);
    line.say(" %d", twins.dupenv(&value, &size, "REHEAP_NOT_SET"));
    line.say(value == nullptr ? " null" : " BLOCK").say(" size=%Iu", size);
  }
  if (twins.wdupenv != nullptr) {
    wchar_t* value = nullptr;
    size_t size = 0;
    Line("%s_wdupenv_s", twins.prefix).say(" %d", twins.wdupenv(&value, &size, L"REHEAP_CONFORMANCE"));
    tell_text<wchar_t>(twins, "_wdupenv_s", value, L"value");
  }
}

void check_paths(const Twins& twins) {
  if (twins.fullpath != nullptr) {
    tell_text(twins, "_fullpath", twins.fullpath(nullptr, "c:\\windows\\..\\x", 0), "c:\\x");
    tell_text(twins, "_fullpath(100)", twins.fullpath(nullptr, "c:\\windows\\..\\x", 100), "c:\\x");
  }
  if (twins.wfullpath != nullptr)
    tell_text(twins, "_wfullpath", twins.wfullpath(nullptr, L"c:\\windows\\..\\x", 0), L"c:\\x");
  if (twins.getcwd != nullptr) {
    tell_text<char>(twins, "_getcwd(0)", twins.getcwd(nullptr, 0), nullptr);
    tell_text<char>(twins, "_getcwd(500)", twins.getcwd(nullptr, 500), nullptr);
  }
  if (twins.wgetcwd != nullptr) {
    tell_text<wchar_t>(twins, "_wgetcwd(0)", twins.wgetcwd(nullptr, 0), nullptr);
    tell_text<wchar_t>(twins, "_wgetcwd(500)", twins.wgetcwd(nullptr, 500), nullptr);
  }
  constexpr int kDriveC = 3;
  if (twins.getdcwd != nullptr) tell_text<char>(twins, "_getdcwd(500)", twins.getdcwd(kDriveC, nullptr, 500), nullptr);
  if (twins.wgetdcwd != nullptr)
    tell_text<wchar_t>(twins, "_wgetdcwd(500)", twins.wgetdcwd(kDriveC, nullptr, 500), nullptr);
}

// The name is another in every run, and so is its length.
template <typename Char> void tell_name(const Twins& twins, const char* name, Char* text) {
  Line line("%s%s", twins.prefix, name);
  line.say(text == nullptr ? " null" : " block");
  if (text == nullptr) return;
  if (exact_size(twins, text) < bytes(text)) line.say(" TOO SMALL");
  tell_served(name, text);
  twins.free(text);
}

void check_names(const Twins& twins) {
  if (twins.tempnam != nullptr) tell_name(twins, "_tempnam", twins.tempnam("c:\\windows", "rh"));
  if (twins.wtempnam != nullptr) tell_name(twins, "_wtempnam", twins.wtempnam(L"c:\\windows", L"rh"));
}

void check_locale(const Twins& twins) {
  if (twins.getdays != nullptr) tell_text<char>(twins, "_Getdays", twins.getdays(), nullptr);
  if (twins.getmonths != nullptr) tell_text<char>(twins, "_Getmonths", twins.getmonths(), nullptr);
  if (twins.gettnames != nullptr) tell_name(twins, "_Gettnames", static_cast<char*>(twins.gettnames()));
  if (twins.wgetdays != nullptr) tell_text<wchar_t>(twins, "_W_Getdays", twins.wgetdays(), nullptr);
  if (twins.wgetmonths != nullptr) tell_text<wchar_t>(twins, "_W_Getmonths", twins.wgetmonths(), nullptr);
  if (twins.wgettnames != nullptr) tell_name(twins, "_W_Gettnames", static_cast<char*>(twins.wgettnames()));
}

}  // namespace

void check_copies(const Twins& twins) {
  check_duplicates(twins);
  check_environment(twins);
  check_paths(twins);
  check_names(twins);
  check_locale(twins);
}
