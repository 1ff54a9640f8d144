#include "places.h"

namespace rh::inject {
namespace {

size_t length_of(const wchar_t* text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  return length;
}

bool is_separator(wchar_t character) { return character == L'\\' || character == L'/'; }

// Where one may lie, without the ".dll" or ".exe".
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

bool find_part(const wchar_t* beside, pe::FileKind part, WORD machine, Path& found) {
  for (const wchar_t* stem : kStems) {
    Path candidate;
    if (!candidate.set(beside)) return false;
    candidate.to_folder();
    if (!candidate.append(stem) || !candidate.append(part == pe::FileKind::library ? L".dll" : L".exe")) continue;
    if (file_machine(candidate.text, part) == machine) return found.set(candidate.text);
  }
  return false;
}

}  // namespace rh::inject
