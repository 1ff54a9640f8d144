/* Blocks with pages of their own. */
#include "crime.h"

enum { LENGTH = 48, LATEST_START = 3 * 4096 - LENGTH };

/* A block that ends where its pages do, or one that begins there. In a file of its own, guarded.c, for what it includes
 * takes longer to compile than all of them. */
char* guarded_block(int at_end);
