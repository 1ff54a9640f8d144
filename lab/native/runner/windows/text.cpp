#include "text.h"

#include <windows.h>

namespace runner {
namespace {

bool is_blank(wchar_t character) { return character == L' ' || character == L'\t'; }

// Past one word and the blanks behind it. Quotes hold a word together; a backslash before one takes its meaning.
const wchar_t* skip_word(const wchar_t* at) {
  for (bool quoted = false; *at != 0 && (quoted || !is_blank(*at)); ++at)
    if (*at == L'\\' && at[1] == L'"')
      ++at;
    else if (*at == L'"')
      quoted = !quoted;
  while (is_blank(*at)) ++at;
  return at;
}

bool is_dashes(const wchar_t* word) {
  return word[0] == L'-' && word[1] == L'-' && (word[2] == 0 || is_blank(word[2]));
}

}  // namespace

std::wstring wide(const std::string& text) {
  const int bytes = static_cast<int>(text.size());
  const int length = MultiByteToWideChar(CP_ACP, 0, text.data(), bytes, nullptr, 0);
  std::wstring result(static_cast<size_t>(length), L'\0');
  MultiByteToWideChar(CP_ACP, 0, text.data(), bytes, result.data(), length);
  return result;
}

std::string narrow(const std::wstring& text) {
  const int units = static_cast<int>(text.size());
  const int length = WideCharToMultiByte(CP_UTF8, 0, text.data(), units, nullptr, 0, nullptr, nullptr);
  std::string result(static_cast<size_t>(length), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), units, result.data(), length, nullptr, nullptr);
  return result;
}

std::wstring command_after_dashes(const wchar_t* line) {
  for (const wchar_t* at = skip_word(line); *at != 0; at = skip_word(at))
    if (is_dashes(at)) return skip_word(at);
  return {};
}

std::string error_text(const std::string& what, unsigned long error) {
  wchar_t* words = nullptr;
  const DWORD length =
      FormatMessageW(FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS,
                     nullptr, error, 0, reinterpret_cast<wchar_t*>(&words), 0, nullptr);
  std::wstring why(words == nullptr ? L"" : words, length);
  LocalFree(words);
  why.erase(why.find_last_not_of(L" .\r\n") + 1);
  return what + ": " + narrow(why) + " (error " + std::to_string(error) + ")";
}

}  // namespace runner
