// Writes its id to the file that is named, then allocates and frees until its input ends.
#include <windows.h>

#include <stdio.h>
#include <stdlib.h>

static volatile LONG ends = 0;

static DWORD WINAPI wait_for_end(void* unused) {
  (void)unused;
  while (getchar() != EOF) {}
  InterlockedExchange(&ends, 1);
  return 0;
}

int main(int count, char** words) {
  if (count != 2) return 2;
  CloseHandle(CreateThread(NULL, 0, wait_for_end, NULL, 0, NULL));
  FILE* file = fopen(words[1], "w");
  fprintf(file, "%lu.", GetCurrentProcessId());
  fclose(file);
  void* blocks[64] = {0};
  for (unsigned turn = 0; ends == 0; ++turn) {
    free(blocks[turn % 64]);
    blocks[turn % 64] = malloc(1000 + turn % 5000);
    if (turn % 64 == 0) Sleep(1);
  }
  return 7;
}
