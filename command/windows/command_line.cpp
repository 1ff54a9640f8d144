#include "command_line.h"

#include <cwchar>

namespace rh::command {
namespace {

bool is_blank(wchar_t character) { return character == L' ' || character == L'\t'; }

void skip_blanks(const wchar_t*& at) {
  while (is_blank(*at)) ++at;
}

// The first word of a line: quotes hold it together, backslashes are backslashes.
std::wstring take_program(const wchar_t*& at) {
  std::wstring word;
  for (bool quoted = false; *at != 0 && (quoted || !is_blank(*at)); ++at)
    if (*at == L'"')
      quoted = !quoted;
    else
      word += *at;
  return word;
}

// Backslashes mean something before a quote only: two of them one, and an odd one the quote itself.
bool take_backslashes(const wchar_t*& at, std::wstring& word) {
  std::size_t count = 0;
  for (; *at == L'\\'; ++at) ++count;
  if (*at != L'"') {
    word.append(count, L'\\');
    return false;
  }
  word.append(count / 2, L'\\');
  if (count % 2 == 0) return false;
  word += *at++;
  return true;
}

// Any other word, as the C runtimes and CommandLineToArgvW read it.
std::wstring take_word(const wchar_t*& at) {
  std::wstring word;
  for (bool quoted = false;;) {
    if (*at == L'\\' && take_backslashes(at, word)) continue;
    if (*at == L'"') {
      ++at;
      // Within quotes, two of them are one.
      if (quoted && *at == L'"')
        word += *at++;
      else
        quoted = !quoted;
    } else if (*at == 0 || (!quoted && is_blank(*at))) {
      return word;
    } else {
      word += *at++;
    }
  }
}

}  // namespace

CommandLine split(const wchar_t* line) {
  CommandLine split;
  take_program(line);
  for (skip_blanks(line); *line != 0; skip_blanks(line)) {
    std::wstring word = take_word(line);
    if (word != L"--") {
      split.words.push_back(std::move(word));
      continue;
    }
    skip_blanks(line);
    split.has_program = true;
    split.program_line = line;
    split.program = take_program(line);
    break;
  }
  return split;
}

}  // namespace rh::command
