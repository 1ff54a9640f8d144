/* Writes what it was started with, each string ended by a zero: pid, parent's pid, number of arguments,
 * the arguments, the environment. */
#include <stdio.h>
#include <unistd.h>

extern char** environ;

int main(int count, char** words) {
  printf("%d%c%d%c%d%c", (int)getpid(), 0, (int)getppid(), 0, count, 0);
  for (int at = 0; at < count; ++at) printf("%s%c", words[at], 0);
  for (char** variable = environ; *variable; ++variable) printf("%s%c", *variable, 0);
  return 0;
}
