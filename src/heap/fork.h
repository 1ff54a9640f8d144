// Fork, at any moment of any thread, from signal handlers too.
//
// The forking thread takes every lock before the fork, so that what they guard is whole in the child, and notes how far
// each list had come that others change without a lock: what was in it then stays as it is, and the child goes on from
// there. The thread waits for a lock only so long, and others wait for it only so long (platform/lock.h): what could
// not be held is given up in the child, which starts anew beside it. docs/design/fork.md says why this is enough.
#pragma once

namespace rh::fork {

// Has the platform call the three below around every fork from now on. Once is enough: before a second thread may use
// the heap, for a fork that has begun by then calls none of them.
void watch();

// For the platform to call around every fork.
void before();
void after_in_parent();
void after_in_child();

}  // namespace rh::fork
