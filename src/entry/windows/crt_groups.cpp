// The groups of the C runtime's names that come along with malloc: a runtime's own functions beside ours would meet our
// blocks.
#include <cstddef>

extern "C" {
size_t _msize(void* block);
void* _recalloc(void* block, size_t count, size_t size);
void* _expand(void* block, size_t size);
void _aligned_free(void* block);
void _free_dbg(void* block, int kind);
}

namespace rh {

extern const void* const g_crt_groups[];
const void* const g_crt_groups[] = {reinterpret_cast<const void*>(&_msize), reinterpret_cast<const void*>(&_recalloc),
                                    reinterpret_cast<const void*>(&_expand),
                                    reinterpret_cast<const void*>(&_aligned_free),
                                    reinterpret_cast<const void*>(&_free_dbg)};

}  // namespace rh
