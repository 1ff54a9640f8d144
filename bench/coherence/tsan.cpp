// The functions that -fsanitize=thread makes the compiler call: one before each access, one in place of each atomic
// operation. The names and signatures are LLVM's (compiler-rt/lib/tsan/rtl/tsan_interface.h, tsan_interface_atomic.h).
//
// Atomic operations are all carried out sequentially consistent. Orders weaker than that are the machine's business;
// which lines move does not depend on them.
#include <cstdint>
#include <cstring>

#include "counter.h"

using coherence::note_access;
using coherence::lines::Access;

namespace {

uintptr_t address_of(const volatile void* object) { return reinterpret_cast<uintptr_t>(object); }

void note_read(const volatile void* object, size_t size, void* place) {
  note_access(address_of(object), size, Access::read, address_of(place));
}

void note_write(const volatile void* object, size_t size, void* place) {
  note_access(address_of(object), size, Access::write, address_of(place));
}

void note_change(const volatile void* object, size_t size, void* place) {
  note_access(address_of(object), size, Access::read_modify_write, address_of(place));
}

}  // namespace

// Who called an entry point.
#define PLACE __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

void __tsan_vptr_update(void** object, void*) { note_write(object, sizeof(void*), PLACE); }
void __tsan_vptr_read(void** object) { note_read(object, sizeof(void*), PLACE); }

void __tsan_read_range(void* from, size_t size) { note_read(from, size, PLACE); }
void __tsan_write_range(void* to, size_t size) { note_write(to, size, PLACE); }

void* __tsan_memcpy(void* to, const void* from, size_t size) {
  note_read(from, size, PLACE);
  note_write(to, size, PLACE);
  return memcpy(to, from, size);
}

void* __tsan_memmove(void* to, const void* from, size_t size) {
  note_read(from, size, PLACE);
  note_write(to, size, PLACE);
  return memmove(to, from, size);
}

void* __tsan_memset(void* to, int value, size_t size) {
  note_write(to, size, PLACE);
  return memset(to, value, size);
}

#define PLAIN(SIZE)                                                                  \
  void __tsan_read##SIZE(void* object) { note_read(object, SIZE, PLACE); }           \
  void __tsan_write##SIZE(void* object) { note_write(object, SIZE, PLACE); }         \
  void __tsan_unaligned_read##SIZE(void* object) { note_read(object, SIZE, PLACE); } \
  void __tsan_unaligned_write##SIZE(void* object) { note_write(object, SIZE, PLACE); }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

#define FETCH(BITS, OPERATION)                                                                                         \
  uint##BITS##_t __tsan_atomic##BITS##_fetch_##OPERATION(volatile uint##BITS##_t* object, uint##BITS##_t value, int) { \
    note_change(object, sizeof(value), PLACE);                                                                         \
    return __atomic_fetch_##OPERATION(object, value, __ATOMIC_SEQ_CST);                                                \
  }

#define COMPARE_EXCHANGE(BITS, STRENGTH)                                                                           \
  int __tsan_atomic##BITS##_compare_exchange_##STRENGTH(volatile uint##BITS##_t* object, uint##BITS##_t* expected, \
                                                        uint##BITS##_t value, int, int) {                          \
    note_change(object, sizeof(value), PLACE);                                                                     \
    return __atomic_compare_exchange_n(object, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
  }

#define ATOMIC(BITS)                                                                                                  \
  uint##BITS##_t __tsan_atomic##BITS##_load(const volatile uint##BITS##_t* object, int) {                             \
    note_read(object, sizeof(*object), PLACE);                                                                        \
    return __atomic_load_n(object, __ATOMIC_SEQ_CST);                                                                 \
  }                                                                                                                   \
  void __tsan_atomic##BITS##_store(volatile uint##BITS##_t* object, uint##BITS##_t value, int) {                      \
    note_write(object, sizeof(value), PLACE);                                                                         \
    __atomic_store_n(object, value, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                                   \
  uint##BITS##_t __tsan_atomic##BITS##_exchange(volatile uint##BITS##_t* object, uint##BITS##_t value, int) {         \
    note_change(object, sizeof(value), PLACE);                                                                        \
    return __atomic_exchange_n(object, value, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                                   \
  uint##BITS##_t __tsan_atomic##BITS##_compare_exchange_val(volatile uint##BITS##_t* object, uint##BITS##_t expected, \
                                                            uint##BITS##_t value, int, int) {                         \
    note_change(object, sizeof(value), PLACE);                                                                        \
    __atomic_compare_exchange_n(object, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                 \
    return expected;                                                                                                  \
  }                                                                                                                   \
  COMPARE_EXCHANGE(BITS, strong)                                                                                      \
  COMPARE_EXCHANGE(BITS, weak)                                                                                        \
  FETCH(BITS, add)                                                                                                    \
  FETCH(BITS, sub)                                                                                                    \
  FETCH(BITS, and)                                                                                                    \
  FETCH(BITS, or)                                                                                                     \
  FETCH(BITS, xor)                                                                                                    \
  FETCH(BITS, nand)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

}  // extern "C"
