#include "program.h"

#include "text.h"

#include <vector>

namespace rh::command {
namespace {

// In the shell's order: beside the .exe of some programs with windows lies a .com for consoles.
constexpr const wchar_t* kExtensions[] = {L".com", L".exe", L".bat", L".cmd"};

bool is_file(const std::wstring& path) {
  const DWORD attributes = GetFileAttributesW(path.c_str());
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
}

constexpr DWORD kLongest = 32768;  // of paths and variables

std::wstring full(const std::wstring& path) {
  const std::wstring found = full_path(path, kLongest);
  return found.empty() ? path : found;
}

bool has_extension(const std::wstring& name) {
  const std::size_t dot = name.find_last_of(L".\\/:");
  return dot != std::wstring::npos && name[dot] == L'.';
}

std::wstring with_extension(const std::wstring& path) {
  if (has_extension(path) && is_file(path)) return full(path);
  for (const wchar_t* extension : kExtensions)
    if (is_file(path + extension)) return full(path + extension);
  return {};
}

std::wstring variable(const wchar_t* name) {
  std::vector<wchar_t> text(kLongest);
  const DWORD length = GetEnvironmentVariableW(name, text.data(), static_cast<DWORD>(text.size()));
  return length < text.size() ? std::wstring(text.data(), length) : std::wstring();
}

// Quotes keep together what has a semicolon in it.
void add_path(std::vector<std::wstring>& folders) {
  std::wstring folder;
  bool quoted = false;
  const auto add = [&] {
    if (!folder.empty()) folders.push_back(folder);
    folder.clear();
  };
  for (const wchar_t character : variable(L"PATH"))
    if (character == L'"')
      quoted = !quoted;
    else if (character == L';' && !quoted)
      add();
    else
      folder += character;
  add();
}

std::vector<std::wstring> search_folders(const std::wstring& name) {
  wchar_t folder[MAX_PATH];
  std::vector<std::wstring> folders;
  if (NeedCurrentDirectoryForExePathW(name.c_str())) folders.emplace_back(L".");
  if (GetSystemDirectoryW(folder, MAX_PATH)) folders.emplace_back(folder);
  if (GetWindowsDirectoryW(folder, MAX_PATH)) folders.emplace_back(folder);
  add_path(folders);
  return folders;
}

}  // namespace

std::wstring find_program(const std::wstring& name) {
  if (name.find_first_of(L"\\/:") != std::wstring::npos) {
    const std::wstring found = with_extension(name);
    // CreateProcess takes a path as it is, which the shell does not.
    return found.empty() && is_file(name) ? full(name) : found;
  }
  for (const std::wstring& folder : search_folders(name)) {
    std::wstring found = with_extension(folder + L"\\" + name);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace rh::command
