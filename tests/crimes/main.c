/* All crimes as one program: its first word says which to commit. CRIMES lists them, as CRIME(name) each. */
#include <stdio.h>
#include <string.h>

#define CRIME(name) int crime_##name(void);
CRIMES
#undef CRIME

int main(int count, char** words) {
#define CRIME(name) \
  if (count == 2 && strcmp(words[1], #name) == 0) return crime_##name();
  CRIMES
#undef CRIME
  fprintf(stderr, "no such crime\n");
  return 2;
}
