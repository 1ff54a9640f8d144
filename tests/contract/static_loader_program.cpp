// A fully static program that opens a shared library all the same: there is no other dlopen behind ours.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "reheap/reheap.h"

int main() {
  void* mathematics = dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND);
  if (!mathematics) return std::puts(dlerror()), 1;
  auto* cosine = reinterpret_cast<double (*)(double)>(dlsym(mathematics, "cos"));
  const bool works = cosine && cosine(0) == 1;
  const bool refuses = dlopen("no-such-library.so", RTLD_NOW) == nullptr && dlerror() != nullptr;
  void* block = std::malloc(1);
  const bool ours = rh_owns(block);
  std::free(block);
  std::printf("opens %d, refuses %d, ours %d\n", works, refuses, ours);
  return works && refuses && ours ? 0 : 1;
}
