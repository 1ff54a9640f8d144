// A C runtime's allocation functions on a peer: in the place of own_functions.cpp of reheap.dll. The rules that
// programs rely on are kept (realloc to nothing frees, errno, foreign blocks go back to their runtime); new handler and
// new mode are not asked.
#include <errno.h>
#include <string.h>

#include "peer.h"
#include "redirect/crt/replacements.h"

namespace rh::redirect {

namespace {

template <unsigned kSlot> struct Functions {
  template <typename Function> static Function* original(Role role) {
    return reinterpret_cast<Function*>(const_cast<void*>(g_slots[kSlot].originals[role]));
  }

  static void* checked(void* block) {
    if (block == nullptr && g_slots[kSlot].host.errno_address != nullptr) *g_slots[kSlot].host.errno_address() = ENOMEM;
    return block;
  }

  static void* malloc(size_t size) { return checked(peer_malloc(size)); }
  static void* calloc(size_t count, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return checked(nullptr);
    return checked(peer_zalloc(bytes));
  }
  static void free(void* block) {
    if (block == nullptr || peer_free(block) != 0) return;
    original<void(void*)>(Role::free)(block);
  }
  static void* realloc(void* block, size_t size) {
    if (block == nullptr) return malloc(size);
    if (!peer_owns(block)) return original<void*(void*, size_t)>(Role::realloc)(block, size);
    if (size != 0) return checked(peer_realloc(block, size));
    free(block);
    return nullptr;
  }
  static void* recalloc(void* block, size_t count, size_t size) {
    if (block == nullptr) return calloc(count, size);
    if (!peer_owns(block)) return original<void*(void*, size_t, size_t)>(Role::recalloc)(block, count, size);
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return checked(nullptr);
    size_t before = peer_size(block);
    void* resized = realloc(block, bytes);
    if (resized != nullptr && bytes > before) memset(static_cast<char*>(resized) + before, 0, bytes - before);
    return resized;
  }
  static size_t msize(void* block) {
    return peer_owns(block) ? peer_size(block) : original<size_t(void*)>(Role::msize)(block);
  }
  static void* expand(void* block, size_t size) {
    if (!peer_owns(block)) return original<void*(void*, size_t)>(Role::expand)(block, size);
    return peer_fits(block, size) ? block : nullptr;
  }

  static void* aligned_offset_malloc(size_t size, size_t alignment, size_t offset) {
    return checked(peer_aligned(size, alignment, offset));
  }
  static void* aligned_malloc(size_t size, size_t alignment) { return aligned_offset_malloc(size, alignment, 0); }
  static void aligned_free(void* block) {
    if (block == nullptr || peer_free(block) != 0) return;
    original<void(void*)>(Role::aligned_free)(block);
  }
  static size_t aligned_msize(void* block, size_t alignment, size_t offset) {
    if (peer_owns(block)) return peer_size(block);
    return original<size_t(void*, size_t, size_t)>(Role::aligned_msize)(block, alignment, offset);
  }
  static void* aligned_offset_realloc(void* block, size_t size, size_t alignment, size_t offset) {
    if (size == 0) {
      aligned_free(block);
      return nullptr;
    }
    void* fresh = aligned_offset_malloc(size, alignment, offset);
    if (fresh == nullptr || block == nullptr) return fresh;
    size_t before = aligned_msize(block, alignment, offset);
    memcpy(fresh, block, before < size ? before : size);
    aligned_free(block);
    return fresh;
  }
  static void* aligned_realloc(void* block, size_t size, size_t alignment) {
    return aligned_offset_realloc(block, size, alignment, 0);
  }
  static void* aligned_offset_recalloc(void* block, size_t count, size_t size, size_t alignment, size_t offset) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return checked(nullptr);
    size_t before = block != nullptr ? aligned_msize(block, alignment, offset) : 0;
    void* resized = aligned_offset_realloc(block, bytes, alignment, offset);
    if (resized != nullptr && bytes > before) memset(static_cast<char*>(resized) + before, 0, bytes - before);
    return resized;
  }
  static void* aligned_recalloc(void* block, size_t count, size_t size, size_t alignment) {
    return aligned_offset_recalloc(block, count, size, alignment, 0);
  }

  static int heapmin() { return original<int()>(Role::heapmin)(); }

  static void* operator_new(size_t size) {
    void* block = peer_malloc(size);
    return block != nullptr ? block : original<void*(size_t)>(Role::operator_new)(size);
  }
  static void* operator_new_nothrow(size_t size, const void*) { return peer_malloc(size); }
  static void operator_delete(void* block) {
    if (block == nullptr || peer_free(block) != 0) return;
    original<void(void*)>(Role::operator_delete)(block);
  }

  static const void* of(Role role) { return plain_replacement<Functions>(role); }
};

}  // namespace

const void* replacement(unsigned slot, Role role) { return replacement_of<Functions>(slot, role); }

bool has_blocks_of_its_own() { return true; }

void set_host(unsigned slot, const Image& runtime, bool) {
  g_slots[slot].host.errno_address = reinterpret_cast<int* (*)()>(runtime.function("_errno"));
}

}  // namespace rh::redirect
