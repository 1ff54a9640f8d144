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
  unsigned difference = 0;
  for (size_t i = 0; i < size; ++i) difference |= static_cast<const unsigned char*>(block)[i] ^ byte_at(i, seed);
  return difference == 0;
}

bool all_zero(const void* block, size_t begin, size_t end) {
  if (block == nullptr) return false;
  unsigned found = 0;
  for (size_t i = begin; i < end; ++i) found |= static_cast<const unsigned char*>(block)[i];
  return found == 0;
}
