// What the recorder needs of the operating system. None of it may call what is recorded.
#pragma once

#include <cstddef>

#include "stream.h"
#include "trace/format.h"

namespace recorder::system {

// Whether the settings can be read yet: the very first calls come before the C library has been set up.
bool ready();

// Whether the processor's counter runs at one rate, on all cores alike.
bool even_counter();

uint64_t time_of_day_nanoseconds();

// Processor time of this process.
uint64_t cpu_nanoseconds();

uint64_t process_id();

// Whether and how stacks are recorded, of the process that begins.
StackSource stack_source();

// Memory, zeroed, that a forked child finds zeroed again. Null when there is none.
void* memory_of_this_process(size_t bytes);

// Makes the trace file of this process, and fills in what only the system knows of its header: process, parent, page
// size, names and command. Null when this process is not to be recorded, or cannot be (then a line has said so). The
// caller writes the rest. The header is mapped, and not inherited by a fork; so are chunks.
trace::FileHeader* open_trace();

// The most bytes a file may have.
uint64_t limit();

struct Chunk {
  void* memory;  // null: for the reason
  trace::Stopped reason;
};

// Makes the file's part [offset, offset + kChunkBytes) take room on the disk, so that writing to it cannot fail, and
// maps it.
Chunk map_chunk(uint64_t offset);
void unmap_chunk(void* memory);

// One line to the user: what stopped the recording of this process.
void say_stopped(trace::Stopped reason);

// When this process was forked off, or 0 if nobody knows.
uint64_t fork_ticks();

// Lets other threads run.
void yield();

// Lets thread_ended run when this thread ends.
void watch_thread();

// While it lives, no handler of a signal runs in this thread, it is not cancelled, and errno is kept.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  uint64_t saved_[3];
};

}  // namespace recorder::system
