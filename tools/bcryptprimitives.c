// Wine 8 lacks this DLL of Windows', which Go's and Rust's programs take their random numbers from. wine_prefix.py
// builds it and puts it into the prefix that it owns.
#include <stdint.h>

__declspec(dllimport) uint8_t __stdcall SystemFunction036(void* buffer, uint32_t size);

__declspec(dllexport) int __stdcall ProcessPrng(uint8_t* buffer, uintptr_t size) {
  while (size > 0) {
    const uint32_t step = size < 1u << 30 ? (uint32_t)size : 1u << 30;
    if (!SystemFunction036(buffer, step)) return 0;
    buffer += step;
    size -= step;
  }
  return 1;
}

int __stdcall DllMain(void* self, uint32_t reason, void* reserved) {
  (void)self, (void)reason, (void)reserved;
  return 1;
}
