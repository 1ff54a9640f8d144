// What programs compiled with allocation tokens call in place of operator new. In the default build each is the one
// without a token.
#include "entry/operators.h"
#include "entry/token_names.h"

namespace rh::operators {

using Align = std::align_val_t;
using Quiet = const std::nothrow_t&;

inline void* new_of(Partition of, size_t size) { return kHardened ? make<kSingle>(size, of) : operator new(size); }

inline void* new_array_of(Partition of, size_t size) {
  return kHardened ? make<kArray>(size, of) : operator new[](size);
}

inline void* new_quiet_of(Partition of, size_t size, Quiet quiet) {
  return kHardened ? make_quietly<kSingle>(size, of) : operator new(size, quiet);
}

inline void* new_array_quiet_of(Partition of, size_t size, Quiet quiet) {
  return kHardened ? make_quietly<kArray>(size, of) : operator new[](size, quiet);
}

inline void* new_aligned_of(Partition of, size_t size, Align align) {
  return kHardened ? make<kSingle>(size, align, of) : operator new(size, align);
}

inline void* new_array_aligned_of(Partition of, size_t size, Align align) {
  return kHardened ? make<kArray>(size, align, of) : operator new[](size, align);
}

inline void* new_aligned_quiet_of(Partition of, size_t size, Align align, Quiet quiet) {
  return kHardened ? make_quietly<kSingle>(size, align, of) : operator new(size, align, quiet);
}

inline void* new_array_aligned_quiet_of(Partition of, size_t size, Align align, Quiet quiet) {
  return kHardened ? make_quietly<kArray>(size, align, of) : operator new[](size, align, quiet);
}

}  // namespace rh::operators

using namespace rh;
using namespace rh::operators;

// ---- as the compilers name them -----------------------------------------------------------------

#if defined(_MSC_VER)
// LLVM 22 knows no others of Microsoft's, and for ARM64EC functions have other names.
#if !defined(_M_ARM64EC) && __SIZEOF_POINTER__ == 8
RH_TOKEN(void*, new_of, "??2@YAPEAX_K@Z", (size), size_t size)
RH_TOKEN(void*, new_array_of, "??_U@YAPEAX_K@Z", (size), size_t size)
RH_TOKEN(void*, new_quiet_of, "??2@YAPEAX_KAEBUnothrow_t@std@@@Z", (size, quiet), size_t size, Quiet quiet)
RH_TOKEN(void*, new_array_quiet_of, "??_U@YAPEAX_KAEBUnothrow_t@std@@@Z", (size, quiet), size_t size, Quiet quiet)
#endif
#else
RH_TOKEN(void*, new_of, "_Znw" RH_SIZE_LETTER, (size), size_t size)
RH_TOKEN(void*, new_array_of, "_Zna" RH_SIZE_LETTER, (size), size_t size)
RH_TOKEN(void*, new_quiet_of, "_Znw" RH_SIZE_LETTER "RKSt9nothrow_t", (size, quiet), size_t size, Quiet quiet)
RH_TOKEN(void*, new_array_quiet_of, "_Zna" RH_SIZE_LETTER "RKSt9nothrow_t", (size, quiet), size_t size, Quiet quiet)
RH_TOKEN(void*, new_aligned_of, "_Znw" RH_SIZE_LETTER "St11align_val_t", (size, align), size_t size, Align align)
RH_TOKEN(void*, new_array_aligned_of, "_Zna" RH_SIZE_LETTER "St11align_val_t", (size, align), size_t size, Align align)
RH_TOKEN(void*, new_aligned_quiet_of, "_Znw" RH_SIZE_LETTER "St11align_val_tRKSt9nothrow_t", (size, align, quiet),
         size_t size, Align align, Quiet quiet)
RH_TOKEN(void*, new_array_aligned_quiet_of, "_Zna" RH_SIZE_LETTER "St11align_val_tRKSt9nothrow_t", (size, align, quiet),
         size_t size, Align align, Quiet quiet)
#endif
