// What the compiler calls on its own, and the entry point, in a program without a CRT.
#include <windows.h>

int run(int argument_count, char** arguments);

extern "C" void* memset(void* to, int value, size_t size) {
  for (size_t i = 0; i < size; i++) static_cast<volatile char*>(to)[i] = static_cast<char>(value);
  return to;
}

extern "C" void* memcpy(void* to, const void* from, size_t size) {
  for (size_t i = 0; i < size; i++) static_cast<volatile char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}

namespace {

constexpr int kMostArguments = 16;

// Splits at spaces; a quote begins and ends a word in which they count for nothing.
int split(char* line, char** arguments) {
  int count = 0;
  while (count < kMostArguments) {
    while (*line == ' ') line++;
    if (*line == 0) break;
    char end = *line == '"' ? '"' : ' ';
    if (end == '"') line++;
    arguments[count++] = line;
    while (*line != 0 && *line != end) line++;
    if (*line != 0) *line++ = 0;
  }
  return count;
}

}  // namespace

extern "C" [[noreturn]] void start() {
  char* arguments[kMostArguments];
  int count = split(GetCommandLineA(), arguments);
  ExitProcess(static_cast<UINT>(run(count, arguments)));
}
