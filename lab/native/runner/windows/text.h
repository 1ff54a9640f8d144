// Windows' text, and the command line as it was written.
#pragma once

#include <string>

namespace runner {

// Of the options' words, which the C runtime gives in the system's code page, as it takes file names.
std::wstring wide(const std::string& text);
// To UTF-8, for the lines of JSON.
std::string narrow(const std::wstring& text);

// What stands behind the word "--" in this program's command line, character by character: no word has to be quoted
// again. Empty when there is none.
std::wstring command_after_dashes(const wchar_t* line);

// "what: why (error N)", as Windows words it.
std::string error_text(const std::string& what, unsigned long error);

}  // namespace runner
