// The options, all of them: a table in options.cpp. docs/options.md says what they are for.
#pragma once

#include <stddef.h>

#include "base/text.h"

namespace rh::options {

enum class When : unsigned char { starting, running };

// Reads REHEAP_… from the environment. What is wrong is reported and ignored.
void load();

// Names what in the environment looks like an option and is none. Unlike load() this may allocate.
void refuse_unknown_variables();

// By its name in lower case without the prefix. False and reported when it cannot be, null too.
bool set(const char* name, const char* value, When when);

bool verbose();
// reheap.dll: which layers it takes the place of.
bool layer_crt();             // the C runtimes' heaps
bool layer_heap();            // the system's
const char* stats_target();   // "" when statistics are not asked for, "1" for stderr, or a file's path
const char* doctor_target();  // "" or a file's path

// The values in force.
void describe(Json& json);

}  // namespace rh::options
