// The interface of second_copy.cpp.
#pragma once

#include <cstddef>

struct SecondCopy {
  void* (*make)(std::size_t size);
  void* (*make_new)(std::size_t size);
  void* (*resize)(void* block, std::size_t size);
  std::size_t (*size_of)(void* block);
  void (*drop)(void* block);
  void (*drop_new)(void* block, std::size_t size);
};
