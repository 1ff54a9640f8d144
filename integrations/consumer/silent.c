/* A program that names no symbol of reheap, nor malloc: its libraries allocate for it. Linking must not leave
 * reheap out. The smoke tests look for the line REHEAP_VERBOSE=1 makes it print. */
#include <stdio.h>

int main(void) { return puts("served") < 0; }
