// What entry points call beside the recording itself (stream.h).
#pragma once

namespace recorder {

// The process is ready to be recorded: its file is made, before any child's.
void process_started();

// This thread makes no more than a few last calls.
void thread_ended();

// The program begins; another one may have been this process before. Events may come earlier.
void process_began();

// The other threads were stopped, wherever they were: none of them holds anything any more.
void others_stopped();

// The process ends: completes what this thread and ended ones wrote. Recording goes on behind it.
void process_ended();

// It ends at once, without destructors. May be called from a handler of a signal.
void process_exits();

}  // namespace recorder
