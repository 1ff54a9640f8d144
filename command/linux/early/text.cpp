#include "common/text.h"

#include "kernel.h"

namespace rh::command {
namespace {

constexpr std::size_t region = 256 * 1024;  // most of it never touched, so never resident
constexpr std::size_t alignment = 16;

char* next = nullptr;
std::size_t left = 0;

}  // namespace

void* keep(std::size_t size) {
  size = (size + alignment - 1) & ~(alignment - 1);
  if (size > region) return kernel::map(size);
  if (size > left) {
    next = static_cast<char*>(kernel::map(region));
    left = next ? region : 0;
    if (!next) return nullptr;
  }
  void* block = next;
  next += size;
  left -= size;
  return block;
}

Str join(std::initializer_list<Str> parts) {
  std::size_t size = 0;
  for (const Str& part : parts) size += part.size;
  auto* text = static_cast<char*>(keep(size + 1));
  if (!text) kernel::end(125);
  std::size_t at = 0;
  for (const Str& part : parts)
    for (std::size_t from = 0; from < part.size; ++from) text[at++] = part.data[from];
  text[at] = '\0';
  return {text, size};
}

Str decimal(unsigned long number) {
  char digits[24];
  std::size_t at = sizeof digits;
  do digits[--at] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  return join({Str(digits + at, sizeof digits - at)});
}

}  // namespace rh::command
