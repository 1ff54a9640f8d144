#include "text.h"

namespace rh::command {

std::string narrow(std::wstring_view text) {
  const int length = static_cast<int>(text.size());
  const int size = WideCharToMultiByte(CP_UTF8, 0, text.data(), length, nullptr, 0, nullptr, nullptr);
  std::string result(static_cast<std::size_t>(size), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), length, result.data(), size, nullptr, nullptr);
  return result;
}

std::wstring wide(std::string_view text) {
  const int length = static_cast<int>(text.size());
  const int size = MultiByteToWideChar(CP_UTF8, 0, text.data(), length, nullptr, 0);
  std::wstring result(static_cast<std::size_t>(size), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), length, result.data(), size);
  return result;
}

std::wstring full_path(const std::wstring& name, DWORD longest) {
  std::wstring path(longest, L'\0');
  const DWORD length = GetFullPathNameW(name.c_str(), longest, path.data(), nullptr);
  path.resize(length < longest ? length : 0);
  return path;
}

std::string error_text(DWORD error) {
  wchar_t text[512];
  DWORD length =
      FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK,
                     nullptr, error, 0, text, sizeof text / sizeof *text, nullptr);
  while (length > 0 && (text[length - 1] == L' ' || text[length - 1] == L'.')) --length;
  if (length == 0) return "error " + std::to_string(error);
  // The place for a name that only the caller knows.
  std::string said = narrow({text, length});
  if (const std::size_t name = said.find("%1"); name != std::string::npos) said.replace(name, 2, "the file");
  return said;
}

std::string reason_of(const inject::Outcome& outcome) {
  std::string text = inject::text_of(outcome.obstacle);
  if (outcome.error != 0) text += " (" + error_text(outcome.error) + ")";
  return text;
}

std::string read_file(const wchar_t* path) {
  std::string text;
  const HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, 0, nullptr);
  if (file == INVALID_HANDLE_VALUE) return text;
  char bytes[16 << 10];
  for (DWORD length = 0; ReadFile(file, bytes, sizeof bytes, &length, nullptr) && length > 0;)
    text.append(bytes, length);
  CloseHandle(file);
  return text;
}

}  // namespace rh::command
