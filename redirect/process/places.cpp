#include "places.h"

namespace rh::inject {
namespace {

size_t length_of(const wchar_t* text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  return length;
}

bool is_separator(wchar_t character) { return character == L'\\' || character == L'/'; }

wchar_t lower(wchar_t character) {
  return character >= L'A' && character <= L'Z' ? static_cast<wchar_t>(character - L'A' + L'a') : character;
}

// How the hardened build's libraries end.
constexpr const wchar_t* kHardenedEnd = L"-hardened.dll";

// Where one may lie, without that, or the ".dll" or ".exe".
constexpr const wchar_t* kStems[] = {L"\\reheap", L"\\reheap64", L"\\reheap32", L"\\reheap-arm64"};

}  // namespace

bool Path::set(const wchar_t* path) {
  text[0] = 0;
  return append(path);
}

bool Path::append(const wchar_t* part) {
  const size_t before = length_of(text), added = length_of(part);
  if (before + added >= kLongestPath) {
    text[0] = 0;
    return false;
  }
  for (size_t at = 0; at <= added; ++at) text[before + at] = part[at];
  return true;
}

void Path::to_folder() {
  size_t end = length_of(text);
  while (end > 0 && !is_separator(text[end])) --end;
  text[end] = 0;
}

bool module_path(HMODULE module, Path& path) {
  const DWORD length = GetModuleFileNameW(module, path.text, kLongestPath);
  if (length != 0 && length < kLongestPath) return true;
  path.text[0] = 0;
  return false;
}

static bool find_stem(const wchar_t* beside, pe::FileKind part, const wchar_t* end, WORD machine, Path& found) {
  for (const wchar_t* stem : kStems) {
    Path candidate;
    if (!candidate.set(beside)) return false;
    candidate.to_folder();
    if (!candidate.append(stem) || !candidate.append(end)) continue;
    if (file_machine(candidate.text, part) == machine) return found.set(candidate.text);
  }
  return false;
}

bool find_part(const wchar_t* beside, pe::FileKind part, WORD machine, Path& found) {
  if (part == pe::FileKind::library) return find_library(beside, is_hardened(beside), machine, found);
  return find_stem(beside, part, L".exe", machine, found);
}

bool is_hardened(const wchar_t* library) {
  const size_t length = length_of(library), end = length_of(kHardenedEnd);
  if (length < end) return false;
  for (size_t at = 0; at < end; ++at)
    if (lower(library[length - end + at]) != kHardenedEnd[at]) return false;
  return true;
}

bool find_library(const wchar_t* beside, bool hardened, WORD machine, Path& found) {
  return find_stem(beside, pe::FileKind::library, hardened ? kHardenedEnd : L".dll", machine, found);
}

}  // namespace rh::inject
