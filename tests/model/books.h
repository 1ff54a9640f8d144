// Whether every block is in one place and every unit is counted, when no thread is at work.
#pragma once

namespace rh::model {

// What the program holds: to be told before the books are checked.
void note_held(void* block);

// The laws of arena/span.h and arena/arena.h, and that each block made is held by the program, or free in its slab, or
// in its owner's bin, and in one of these only.
void check_books();

}  // namespace rh::model
