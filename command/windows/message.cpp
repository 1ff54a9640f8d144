// common/message.h on Windows.

#include "common/message.h"

#include "text.h"

#include <windows.h>

namespace rh::command {

void say(std::string_view line) {
  const std::string text = "reheap: " + std::string(line) + "\r\n";
  const HANDLE errors = GetStdHandle(STD_ERROR_HANDLE);
  const std::wstring characters = wide(text);
  DWORD done = 0;
  // A console takes characters, whatever its code page; a file or pipe bytes. Closed, it leaves nobody to tell.
  if (!WriteConsoleW(errors, characters.data(), static_cast<DWORD>(characters.size()), &done, nullptr))
    WriteFile(errors, text.data(), static_cast<DWORD>(text.size()), &done, nullptr);
}

}  // namespace rh::command
