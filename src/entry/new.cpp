// Every operator new and delete.
#include "entry/operators.h"

#if defined(__ELF__)
#define RH_EXPORT [[gnu::visibility("default")]]
#else
#define RH_EXPORT  // by the linker, if at all
#endif

using namespace rh;
using namespace rh::operators;

RH_EXPORT void* operator new(size_t size) { return make<kSingle>(size); }
RH_EXPORT void* operator new[](size_t size) { return make<kArray>(size); }
RH_EXPORT void* operator new(size_t size, const std::nothrow_t&) noexcept { return make_quietly<kSingle>(size); }
RH_EXPORT void* operator new[](size_t size, const std::nothrow_t&) noexcept { return make_quietly<kArray>(size); }
RH_EXPORT void* operator new(size_t size, std::align_val_t alignment) { return make<kSingle>(size, alignment); }
RH_EXPORT void* operator new[](size_t size, std::align_val_t alignment) { return make<kArray>(size, alignment); }
RH_EXPORT void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return make_quietly<kSingle>(size, alignment);
}
RH_EXPORT void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return make_quietly<kArray>(size, alignment);
}

RH_EXPORT void operator delete(void* block) noexcept { rules::free(block, kSingle); }
RH_EXPORT void operator delete[](void* block) noexcept { rules::free(block, kArray); }
RH_EXPORT void operator delete(void* block, size_t size) noexcept { rules::free_sized(block, size, kSingle); }
RH_EXPORT void operator delete[](void* block, size_t size) noexcept { rules::free_sized(block, size, kArray); }
RH_EXPORT void operator delete(void* block, const std::nothrow_t&) noexcept { rules::free(block, kSingle); }
RH_EXPORT void operator delete[](void* block, const std::nothrow_t&) noexcept { rules::free(block, kArray); }
RH_EXPORT void operator delete(void* block, std::align_val_t) noexcept { rules::free(block, kSingle); }
RH_EXPORT void operator delete[](void* block, std::align_val_t) noexcept { rules::free(block, kArray); }
RH_EXPORT void operator delete(void* block, size_t size, std::align_val_t) noexcept {
  rules::free_sized(block, size, kSingle);
}
RH_EXPORT void operator delete[](void* block, size_t size, std::align_val_t) noexcept {
  rules::free_sized(block, size, kArray);
}
RH_EXPORT void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  rules::free(block, kSingle);
}
RH_EXPORT void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  rules::free(block, kArray);
}
