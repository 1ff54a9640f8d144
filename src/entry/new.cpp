// Every operator new and delete.
#include "entry/operators.h"
#include "entry/replaced.h"

// Weak: where a program that is linked with the archive defines some itself, those are taken.
#if defined(__ELF__)
#define RH_OPERATOR [[gnu::visibility("default"), gnu::weak]]
#else
#define RH_OPERATOR  // by the linker, if at all
#endif

using namespace rh;
using namespace rh::operators;

using Align = std::align_val_t;
using Quiet = const std::nothrow_t&;

// ---- the roots of the single forms: whoever replaces these, replaces what follows ----------------

RH_OPERATOR void* operator new(size_t size) { return make<kSingle>(size); }
RH_OPERATOR void* operator new(size_t size, Align alignment) { return make<kSingle>(size, alignment); }
RH_OPERATOR void operator delete(void* block) noexcept { rules::free(block, kSingle); }
RH_OPERATOR void operator delete(void* block, Align) noexcept { rules::free(block, kSingle); }

// ---- new ----------------------------------------------------------------------------------------

RH_OPERATOR void* operator new[](size_t size) {
  return by_root<Make>(
      Root::make, Root::make, [=](Make* theirs) { return theirs(size); }, [=] { return make<kArray>(size); });
}

RH_OPERATOR void* operator new[](size_t size, Align alignment) {
  return by_root<MakeAligned>(
      Root::make_aligned, Root::make_aligned, [=](MakeAligned* theirs) { return theirs(size, alignment); },
      [=] { return make<kArray>(size, alignment); });
}

template <Maker maker> RH_INLINE static void* new_quietly(Root root, size_t size) noexcept {
  return by_root<Make>(
      root, Root::make, [=](Make* theirs) { return call_quietly(theirs, size); },
      [=] { return make_quietly<maker>(size); });
}

template <Maker maker> RH_INLINE static void* new_quietly(Root root, size_t size, Align alignment) noexcept {
  return by_root<MakeAligned>(
      root, Root::make_aligned, [=](MakeAligned* theirs) { return call_quietly(theirs, size, alignment); },
      [=] { return make_quietly<maker>(size, alignment); });
}

RH_OPERATOR void* operator new(size_t size, Quiet) noexcept { return new_quietly<kSingle>(Root::make, size); }
RH_OPERATOR void* operator new[](size_t size, Quiet) noexcept { return new_quietly<kArray>(Root::make_array, size); }
RH_OPERATOR void* operator new(size_t size, Align alignment, Quiet) noexcept {
  return new_quietly<kSingle>(Root::make_aligned, size, alignment);
}
RH_OPERATOR void* operator new[](size_t size, Align alignment, Quiet) noexcept {
  return new_quietly<kArray>(Root::make_array_aligned, size, alignment);
}

// ---- delete -------------------------------------------------------------------------------------

template <Maker maker> RH_INLINE static void release(Root root, void* block, size_t size = hardened::kUnknown) {
  by_root<Free>(root, Root::free, [=](Free* theirs) { theirs(block); }, [=] { rules::free(block, maker, size); });
}

template <Maker maker>
RH_INLINE static void release_aligned(Root root, void* block, Align alignment, size_t size = hardened::kUnknown) {
  by_root<FreeAligned>(
      root, Root::free_aligned, [=](FreeAligned* theirs) { theirs(block, alignment); },
      [=] { rules::free(block, maker, size); });
}

RH_OPERATOR void operator delete[](void* block) noexcept { release<kArray>(Root::free, block); }
RH_OPERATOR void operator delete(void* block, size_t size) noexcept { release<kSingle>(Root::free, block, size); }
RH_OPERATOR void operator delete[](void* block, size_t size) noexcept {
  release<kArray>(Root::free_array, block, size);
}
RH_OPERATOR void operator delete(void* block, Quiet) noexcept { release<kSingle>(Root::free, block); }
RH_OPERATOR void operator delete[](void* block, Quiet) noexcept { release<kArray>(Root::free_array, block); }

RH_OPERATOR void operator delete[](void* block, Align alignment) noexcept {
  release_aligned<kArray>(Root::free_aligned, block, alignment);
}
RH_OPERATOR void operator delete(void* block, size_t size, Align alignment) noexcept {
  release_aligned<kSingle>(Root::free_aligned, block, alignment, size);
}
RH_OPERATOR void operator delete[](void* block, size_t size, Align alignment) noexcept {
  release_aligned<kArray>(Root::free_array_aligned, block, alignment, size);
}
RH_OPERATOR void operator delete(void* block, Align alignment, Quiet) noexcept {
  release_aligned<kSingle>(Root::free_aligned, block, alignment);
}
RH_OPERATOR void operator delete[](void* block, Align alignment, Quiet) noexcept {
  release_aligned<kArray>(Root::free_array_aligned, block, alignment);
}

#if defined(__ELF__)

// Names of the roots that stay ours, whatever those mean to the program. With what the compiler knows of theirs.
#define RH_OUR_MAKE(name) [[gnu::alias(name), gnu::malloc, gnu::alloc_size(1)]]
RH_OUR_MAKE("_Znw" RH_SIZE_LETTER) static void* ours_make(size_t);
RH_OUR_MAKE("_Zna" RH_SIZE_LETTER) static void* ours_make_array(size_t);
RH_OUR_MAKE("_Znw" RH_SIZE_LETTER "St11align_val_t") static void* ours_make_aligned(size_t, Align);
RH_OUR_MAKE("_Zna" RH_SIZE_LETTER "St11align_val_t") static void* ours_make_array_aligned(size_t, Align);
[[gnu::alias("_ZdlPv")]] static void ours_free(void*) noexcept;
[[gnu::alias("_ZdaPv")]] static void ours_free_array(void*) noexcept;
[[gnu::alias("_ZdlPvSt11align_val_t")]] static void ours_free_aligned(void*, Align) noexcept;
[[gnu::alias("_ZdaPvSt11align_val_t")]] static void ours_free_array_aligned(void*, Align) noexcept;

namespace rh::operators {

const OurRoot kOurRoots[kRoots] = {
    {"_Znw" RH_SIZE_LETTER, reinterpret_cast<void*>(ours_make)},
    {"_Zna" RH_SIZE_LETTER, reinterpret_cast<void*>(ours_make_array)},
    {"_Znw" RH_SIZE_LETTER "St11align_val_t", reinterpret_cast<void*>(ours_make_aligned)},
    {"_Zna" RH_SIZE_LETTER "St11align_val_t", reinterpret_cast<void*>(ours_make_array_aligned)},
    {"_ZdlPv", reinterpret_cast<void*>(ours_free)},
    {"_ZdaPv", reinterpret_cast<void*>(ours_free_array)},
    {"_ZdlPvSt11align_val_t", reinterpret_cast<void*>(ours_free_aligned)},
    {"_ZdaPvSt11align_val_t", reinterpret_cast<void*>(ours_free_array_aligned)},
};

}  // namespace rh::operators

#endif
