#include "blocks.h"

namespace {

unsigned char byte_at(size_t index, unsigned seed) {
  return static_cast<unsigned char>((index * 31 + seed * 7 + (index >> 8)) | 1);  // never zero
}

}  // namespace

void fill(void* block, size_t size, unsigned seed) {
  if (block == nullptr) return;
  for (size_t i = 0; i < size; ++i) static_cast<unsigned char*>(block)[i] = byte_at(i, seed);
}

bool holds(const void* block, size_t size, unsigned seed) {
  if (block == nullptr) return false;
  for (size_t i = 0; i < size; ++i) {
    if (static_cast<const unsigned char*>(block)[i] != byte_at(i, seed)) return false;
  }
  return true;
}

bool all_zero(const void* block, size_t begin, size_t end) {
  if (block == nullptr) return false;
  for (size_t i = begin; i < end; ++i) {
    if (static_cast<const unsigned char*>(block)[i] != 0) return false;
  }
  return true;
}
