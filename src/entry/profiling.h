// When a profile is made, and where it goes: what REHEAP_PROFILE, its signal and rh_profile_… ask for.
#pragma once

#include <cstdint>

namespace rh::profiling {

// The options. Given a path, the profile begins with the process, unless there is a signal for it.
bool set_target(const char* path);
bool set_every(uint64_t every);
bool set_signal(uint64_t number);
const char* target();
uint64_t every();
uint64_t signal();

// The options have been read.
void begin_with_process();

// The library is loaded.
void begin_listening();

// The process ends; perhaps by a signal's handler, which interrupted this thread while the library was at work.
void end_with_process(bool interrupted);

// What the signal does: begins a profile; ends it, and writes it.
void toggle();

// Begins one anew; 0 bytes: as many as the option says.
void start(uint64_t every);

// Writes to `path`, in which %p is the process's id; null: to the option's. Says so when it cannot.
bool write(const char* path);

}  // namespace rh::profiling
