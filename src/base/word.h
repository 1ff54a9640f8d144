// A word that one thread writes without synchronisation while others may read it; any value it has had is valid for
// them. std::atomic says the same, but compilers treat its accesses as volatile and do not fold them into the
// instructions that use them, which costs free() seven of its twenty-odd. So on x86, where other processors see plain
// stores in order, the fast paths access it plainly; elsewhere, and under ThreadSanitizer, atomically.
#pragma once

#include <atomic>

#include "base/compiler.h"
#include "base/sanitizers.h"
#include "base/schedule.h"

namespace rh {

#if (defined(__x86_64__) || defined(__i386__)) && !RH_THREAD_SANITIZER
inline constexpr bool kPlainWords = true;
#else
inline constexpr bool kPlainWords = false;
#endif

template <typename T> class Word {
 public:
  constexpr Word() = default;
  constexpr explicit Word(T value) : value_(value) {}
  constexpr void set(T value) { value_ = value; }  // while nobody else can read it
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;

  RH_INLINE T load() const {
    if constexpr (kPlainWords) return value_;
    T value;
    __atomic_load(&value_, &value, __ATOMIC_RELAXED);
    return value;
  }

  T load_acquire() const {
    schedule_point();
    T value;
    __atomic_load(&value_, &value, __ATOMIC_ACQUIRE);
    return value;
  }

  void store(T value) { __atomic_store(&value_, &value, __ATOMIC_RELAXED); }

  void store_release(T value) {
    __atomic_store(&value_, &value, __ATOMIC_RELEASE);
    schedule_point();
  }

  // Called by the only writer. Threads that see the result also see what it wrote before.
  RH_INLINE T decrement() {
    schedule_point();
    if constexpr (kPlainWords) {
      std::atomic_signal_fence(std::memory_order_release);
      return --value_;
    }
    T less = static_cast<T>(load() - 1);
    store_release(less);
    return less;
  }

 private:
  T value_{};
};

// A number that is changed under a lock, and looked at by others without it: as one that is plain, but for them.
template <typename T> class SeenNumber {
 public:
  constexpr SeenNumber() = default;
  SeenNumber(const SeenNumber&) = delete;

  RH_INLINE operator T() const { return word_.load(); }
  SeenNumber& operator=(T value) {
    word_.store(value);
    return *this;
  }
  SeenNumber& operator=(const SeenNumber& other) { return *this = T{other}; }
  SeenNumber& operator+=(T more) { return *this = static_cast<T>(*this + more); }
  SeenNumber& operator-=(T less) { return *this = static_cast<T>(*this - less); }

 private:
  Word<T> word_;
};

}  // namespace rh
