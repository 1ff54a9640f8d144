// One call of a function that is recorded, and what is told of it. A function that does its work by another that is
// recorded too is told of once, by the call that the program made: so of a C runtime's malloc and the HeapAlloc in it.
#pragma once

#include <cstddef>

#include "stream/stream.h"

namespace recorder {

// A call under way in this thread.
class Call {
 public:
  Call() : of_ended_thread_(thread_word() % 2 != 0) {
    if (of_ended_thread_) lend_thread_slot(own_);
    slot_ = &thread_slot();
    const auto here = reinterpret_cast<uintptr_t>(this);
    // What stands below this on the stack is over: an exception has ended it.
    outermost_ = slot_->call <= here;
    if (outermost_) slot_->call = here;
  }
  ~Call() {
    if (outermost_) slot_->call = 0;
    if (of_ended_thread_) take_back_thread_slot(own_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool is_outermost() const { return outermost_; }

  // Before it is done: another thread may have the block a moment later.
  void tell_free(const void* block) const {
    if (block != nullptr && outermost_) freed(block, ticks_now());
  }

  // What an allocation gave.
  void tell(trace::Kind kind, const void* block, size_t size, size_t alignment = 0) const {
    if (!outermost_) return;
    if (block != nullptr)
      allocated(kind, block, size, alignment);
    else
      failed(kind, size);
  }

 private:
  ThreadSlot* slot_;
  bool of_ended_thread_, outermost_;
  ThreadSlot own_;
};

}  // namespace recorder
