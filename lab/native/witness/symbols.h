/* Looks into the loaded objects without asking the loader, which may allocate. */
#pragma once

#include <link.h>

/* Whether that object itself defines a function of that name. */
int object_defines(const struct link_map* object, const char* name);

/* Where its function of that name is; NULL when it has none. */
void* function_of(const struct link_map* object, const char* name);
