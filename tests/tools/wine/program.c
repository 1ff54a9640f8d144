// Does what its first word says, for test_wine.py.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static int echo(void) {
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL) printf("read %s", line);
  fputs("error stream\n", stderr);
  return 0;
}

// Says that it lives, on and on, in a file that grows.
static int live(const char* file) {
  for (;;) {
    FILE* out = fopen(file, "a");
    if (out == NULL) return 1;
    fputc('.', out);
    fclose(out);
    Sleep(50);
  }
}

// Starts another that lives, with our streams, and does not wait for it.
static int leave(const char* self, const char* file) {
  char command[1024];
  snprintf(command, sizeof command, "\"%s\" live \"%s\"", self, file);
  STARTUPINFOA start = {.cb = sizeof start};
  PROCESS_INFORMATION process;
  if (!CreateProcessA(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) return 1;
  Sleep(1000);
  return 0;
}

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (strcmp(what, "echo") == 0) return echo();
  if (strcmp(what, "exit") == 0) return atoi(words[2]);
  if (strcmp(what, "crash") == 0) return *(volatile int*)(size_t)count;
  if (strcmp(what, "live") == 0) return live(words[2]);
  if (strcmp(what, "leave") == 0) return leave(words[0], words[2]);
  if (strcmp(what, "bits") == 0) return (int)sizeof(void*) * 8;
  return 99;
}
