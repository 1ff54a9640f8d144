// The other threads of this process, stopped for as long as this lives. Nothing that is done meanwhile may wait for a
// lock: a stopped thread may hold it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rh::redirect {

class StoppedThreads {
 public:
  StoppedThreads();
  ~StoppedThreads();
  StoppedThreads(const StoppedThreads&) = delete;
  StoppedThreads& operator=(const StoppedThreads&) = delete;

  // Whether there is none that still runs. False when new ones came faster than they could be stopped.
  bool all() const { return all_; }
  void resume();

  size_t count() const { return count_; }
  // The address of the instruction the thread stands at; 0 when it cannot be told or there is none yet.
  uintptr_t position(size_t index) const;
  bool set_position(size_t index, uintptr_t address);

 private:
  struct Thread {
    void* handle;
    unsigned long id;
  };

  bool has_patience() const;
  void stop_new_ones();
  bool stop(void* handle);
  bool is_known(unsigned long id) const;

  Thread* threads_ = nullptr;
  size_t count_ = 0;
  unsigned long long late_at_ = 0;
  bool all_ = false;
};

}  // namespace rh::redirect
