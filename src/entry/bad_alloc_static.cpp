// For the archive: a program that uses operator new links its C++ runtime itself.
#include <new>

#include "entry/quietly.h"

namespace rh {

void throw_bad_alloc() { throw std::bad_alloc(); }

bool call_new_handler(std::size_t) {
  std::new_handler handler = std::get_new_handler();
  if (handler != nullptr) handler();
  return handler != nullptr;
}

}  // namespace rh
