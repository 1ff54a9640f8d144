#include "replacements.h"

#include "entry/copies.h"
#include "entry/windows/crt_fast.h"
#include "reheap/reheap.h"

namespace rh::redirect {

namespace {

template <typename Function> Function* as(const void* code) {
  return reinterpret_cast<Function*>(const_cast<void*>(code));
}

// A debug runtime's block types: what malloc makes, and the one that stands for whatever the block has.
constexpr int kNormalBlock = 1;

// Where a runtime cannot tell: all of them keep the start of what they took before the block, in the next aligned word.
// What lies before and behind the block for its alignment counts as present; it may be copied.
size_t theirs_present(const crt::Host& host, void* block, size_t alignment, size_t offset) {
  if (host.aligned_msize != nullptr) return host.aligned_msize(block, alignment, offset);
  uintptr_t address = reinterpret_cast<uintptr_t>(block);
  void* start = *reinterpret_cast<void**>((address & ~(sizeof(void*) - 1)) - sizeof(void*));
  return host.msize(start) - (address - reinterpret_cast<uintptr_t>(start));
}

// A runtime's own _aligned_realloc would take the new block from malloc, which is ours now, and hand out an address
// within it; and it may do its work by another of the family, which is ours as well. So its blocks move over to us.
RH_COLD void* move_here(const crt::Host& host, void* block, size_t size, size_t alignment, size_t offset) {
  size_t present = theirs_present(host, block, alignment, offset);
  void* fresh = crt::aligned_offset_malloc(host, size, alignment, offset);
  if (fresh == nullptr) return nullptr;
  __builtin_memcpy(fresh, block, present < size ? present : size);
  host.aligned_free(block);
  return fresh;
}

// Not ours: in every function of a debug runtime's, so it is called there.
RH_NOINLINE bool is_theirs(const void* block) { return block != nullptr && !rh_owns(block) && !copies::made(block); }

// What every slot has. The parameters are those of the C runtime; `line` and `file` say who asked.
template <unsigned kSlot> struct Functions {
  static const crt::Host& host() { return g_slots[kSlot].host; }

  template <typename Function> static Function* original(Role role) {
    return as<Function>(g_slots[kSlot].originals[role]);
  }

  // ---- base -----------------------------------------------------------------------------------
  static void* malloc(size_t size) { return crt::malloc_inlined(host(), size); }
  static void* calloc(size_t count, size_t size) { return crt::calloc(host(), count, size); }
  static void* realloc(void* block, size_t size) { return crt::realloc(host(), block, size); }
  static void free(void* block) { crt::free_inlined(host(), block); }
  static void* recalloc(void* block, size_t count, size_t size) { return crt::recalloc(host(), block, count, size); }
  static size_t msize(void* block) { return crt::msize(host(), block); }
  static void* expand(void* block, size_t size) { return crt::expand(host(), block, size); }

  // ---- aligned --------------------------------------------------------------------------------
  static void* aligned_malloc(size_t size, size_t alignment) {
    return crt::aligned_malloc_inlined(host(), size, alignment);
  }
  static void aligned_free(void* block) { crt::aligned_free_inlined(host(), block); }
  static void* aligned_realloc(void* block, size_t size, size_t alignment) {
    return crt::aligned_realloc(host(), block, size, alignment);
  }
  static void* aligned_recalloc(void* block, size_t count, size_t size, size_t alignment) {
    return crt::aligned_recalloc(host(), block, count, size, alignment);
  }
  static size_t aligned_msize(void* block, size_t alignment, size_t offset) {
    return crt::aligned_msize(host(), block, alignment, offset);
  }
  static void* aligned_offset_malloc(size_t size, size_t alignment, size_t offset) {
    return crt::aligned_offset_malloc(host(), size, alignment, offset);
  }
  static void* aligned_offset_realloc(void* block, size_t size, size_t alignment, size_t offset) {
    return crt::aligned_offset_realloc(host(), block, size, alignment, offset);
  }
  static void* aligned_offset_recalloc(void* block, size_t count, size_t size, size_t alignment, size_t offset) {
    return crt::aligned_offset_recalloc(host(), block, count, size, alignment, offset);
  }

  // ---- debug: the same without the notes about who asked, which belong to the runtime's own heap; for speed nobody
  // takes such a runtime, so nothing is inlined ----
  using Place = const char*;
  static void* malloc_dbg(size_t size, int, Place, int) { return crt::malloc(host(), size); }
  static void* calloc_dbg(size_t count, size_t size, int, Place, int) { return calloc(count, size); }
  static void* realloc_dbg(void* block, size_t size, int type, Place file, int line) {
    if (!is_theirs(block)) return realloc(block, size);
    return original<void*(void*, size_t, int, Place, int)>(Role::realloc_dbg)(block, size, type, file, line);
  }
  static void free_dbg(void* block, int type) {
    if (!is_theirs(block)) return free(block);
    original<void(void*, int)>(Role::free_dbg)(block, type);
  }
  static void* recalloc_dbg(void* block, size_t count, size_t size, int type, Place file, int line) {
    if (!is_theirs(block)) return recalloc(block, count, size);
    return original<void*(void*, size_t, size_t, int, Place, int)>(Role::recalloc_dbg)(block, count, size, type, file,
                                                                                       line);
  }
  static size_t msize_dbg(void* block, int type) {
    if (!is_theirs(block)) return msize(block);
    return original<size_t(void*, int)>(Role::msize_dbg)(block, type);
  }
  static void* expand_dbg(void* block, size_t size, int type, Place file, int line) {
    if (!is_theirs(block)) return expand(block, size);
    return original<void*(void*, size_t, int, Place, int)>(Role::expand_dbg)(block, size, type, file, line);
  }
  static void* aligned_malloc_dbg(size_t size, size_t alignment, Place, int) {
    return crt::aligned_malloc(host(), size, alignment);
  }
  static void aligned_free_dbg(void* block) { aligned_free(block); }
  static void* aligned_realloc_dbg(void* block, size_t size, size_t alignment, Place, int) {
    return aligned_realloc(block, size, alignment);
  }
  static void* aligned_recalloc_dbg(void* block, size_t count, size_t size, size_t alignment, Place, int) {
    return aligned_recalloc(block, count, size, alignment);
  }
  static void* aligned_offset_malloc_dbg(size_t size, size_t alignment, size_t offset, Place, int) {
    return aligned_offset_malloc(size, alignment, offset);
  }
  static void* aligned_offset_realloc_dbg(void* block, size_t size, size_t alignment, size_t offset, Place, int) {
    return aligned_offset_realloc(block, size, alignment, offset);
  }
  static void* aligned_offset_recalloc_dbg(void* block, size_t count, size_t size, size_t alignment, size_t offset,
                                           Place, int) {
    return aligned_offset_recalloc(block, count, size, alignment, offset);
  }
  static int is_valid_heap_pointer(const void* block) {
    return rh_owns(block) ? 1 : original<int(const void*)>(Role::is_valid_heap_pointer)(block);
  }

  // The runtime's own blocks, for a host whose functions know no types.
  static void theirs_free(void* block) { original<void(void*, int)>(Role::free_dbg)(block, kNormalBlock); }
  static void* theirs_realloc(void* block, size_t size) {
    return original<void*(void*, size_t, int, Place, int)>(Role::realloc_dbg)(block, size, kNormalBlock, nullptr, 0);
  }
  static void* theirs_recalloc(void* block, size_t count, size_t size) {
    return original<void*(void*, size_t, size_t, int, Place, int)>(Role::recalloc_dbg)(block, count, size, kNormalBlock,
                                                                                       nullptr, 0);
  }
  static void* theirs_expand(void* block, size_t size) {
    return original<void*(void*, size_t, int, Place, int)>(Role::expand_dbg)(block, size, kNormalBlock, nullptr, 0);
  }
  static size_t theirs_msize(void* block) { return original<size_t(void*, int)>(Role::msize_dbg)(block, kNormalBlock); }

  // ---- heap -----------------------------------------------------------------------------------
  // Gives unused memory back to the system: ours, and the runtime's.
  static int heapmin() {
    rh_trim();
    return original<int()>(Role::heapmin)();
  }

  // ---- operators: what is to happen without memory (new handler, exception) is the runtime's to do -------------
  static void* operator_new(size_t size) {
    void* block = malloc(size);
    return block != nullptr ? block : original<void*(size_t)>(Role::operator_new)(size);
  }
  static void* operator_new_nothrow(size_t size, const void* tag) {
    void* block = malloc(size);
    return block != nullptr ? block : original<void*(size_t, const void*)>(Role::operator_new_nothrow)(size, tag);
  }
  static void* operator_new_debug(size_t size, int type, Place file, int line) {
    void* block = crt::malloc(host(), size);
    if (block != nullptr) return block;
    return original<void*(size_t, int, Place, int)>(Role::operator_new_debug)(size, type, file, line);
  }
  static void operator_delete(void* block) {
    if (rh_owns(block) || !is_theirs(block)) return free(block);
    original<void(void*)>(Role::operator_delete)(block);
  }

  static const void* of(Role role) {
    // In the order of the roles.
    const void* const debug[] = {
        address_of(malloc_dbg),
        address_of(calloc_dbg),
        address_of(realloc_dbg),
        address_of(free_dbg),
        address_of(recalloc_dbg),
        address_of(msize_dbg),
        address_of(expand_dbg),
        address_of(aligned_malloc_dbg),
        address_of(aligned_free_dbg),
        address_of(aligned_realloc_dbg),
        address_of(aligned_recalloc_dbg),
        address_of(aligned_msize),
        address_of(aligned_offset_malloc_dbg),
        address_of(aligned_offset_realloc_dbg),
        address_of(aligned_offset_recalloc_dbg),
        address_of(is_valid_heap_pointer),
    };
    constexpr auto kFirst = static_cast<size_t>(Role::malloc_dbg);
    static_assert(sizeof(debug) / sizeof(debug[0]) == static_cast<size_t>(Role::heapmin) - kFirst);
    if (role >= Role::malloc_dbg && role < Role::heapmin) return debug[static_cast<size_t>(role) - kFirst];
    if (role == Role::operator_new_debug) return address_of(operator_new_debug);
    return plain_replacement<Functions>(role);
  }

  // The plain functions of such a runtime call its debug ones, which are ours now: only these can be the end of the
  // way. Where both are one function, or there is no debug one, the plain one is.
  static void use_debug_heap(crt::Host& host) {
    auto has = [](Role role) { return g_slots[kSlot].originals[role] != nullptr; };
    if (has(Role::free_dbg)) host.free = theirs_free;
    if (has(Role::realloc_dbg)) host.realloc = theirs_realloc;
    if (has(Role::recalloc_dbg)) host.recalloc = theirs_recalloc;
    if (has(Role::expand_dbg)) host.expand = theirs_expand;
    if (has(Role::msize_dbg)) host.msize = theirs_msize;
    if (has(Role::aligned_free_dbg)) host.aligned_free = original<void(void*)>(Role::aligned_free_dbg);
    if (has(Role::aligned_msize_dbg))
      host.aligned_msize = original<size_t(void*, size_t, size_t)>(Role::aligned_msize_dbg);
  }

  static void* theirs_aligned_offset_realloc(void* block, size_t size, size_t alignment, size_t offset) {
    return move_here(host(), block, size, alignment, offset);
  }
  static void* theirs_aligned_realloc(void* block, size_t size, size_t alignment) {
    return theirs_aligned_offset_realloc(block, size, alignment, 0);
  }

  static void complete(crt::Host& host, bool debug_heap) {
    if (debug_heap) use_debug_heap(host);
    if (host.aligned_free == nullptr || host.msize == nullptr) return;
    host.aligned_realloc = theirs_aligned_realloc;
    host.aligned_offset_realloc = theirs_aligned_offset_realloc;
  }
};

template <typename Function> void set(Function*& field, const void* code) { field = as<Function>(code); }

}  // namespace

const void* replacement(unsigned slot, Role role) { return replacement_of<Functions>(slot, role); }

bool has_blocks_of_its_own() { return true; }

void set_host(unsigned slot, const Image& runtime, bool debug_heap) {
  Originals& from = g_slots[slot].originals;
  crt::Host& host = g_slots[slot].host;
  set(host.free, from[Role::free]);
  set(host.realloc, from[Role::realloc]);
  set(host.recalloc, from[Role::recalloc]);
  set(host.expand, from[Role::expand]);
  set(host.msize, from[Role::msize]);
  set(host.aligned_free, from[Role::aligned_free]);
  set(host.aligned_realloc, from[Role::aligned_realloc]);
  set(host.aligned_offset_realloc, from[Role::aligned_offset_realloc]);
  set(host.aligned_msize, from[Role::aligned_msize]);
  set(host.heapmin, from[Role::heapmin]);
  set(host.heapchk, runtime.function("_heapchk"));
  set(host.heapwalk, runtime.function("_heapwalk"));
  set(host.errno_address, runtime.function("_errno"));
  set(host.query_new_mode, runtime.function("_query_new_mode"));
  if (host.query_new_mode == nullptr)  // of C++ in the runtimes before the UCRT
    set(host.query_new_mode, runtime.function("?_query_new_mode@@YAHXZ"));
  set(host.callnewh, runtime.function("_callnewh"));
  set(host.invalid_parameter, runtime.function("_invalid_parameter_noinfo"));
  with_functions<Functions>(slot, [&](auto functions) { functions.complete(host, debug_heap); });
}

}  // namespace rh::redirect
