#pragma once

#include <cstdint>

// The stack of the caller, as a library sees it that is a file of its own.
unsigned stack_from_library(uintptr_t* frames, unsigned most);
