// A program that uses an installed reheap from C++.
// Called with "serves" when operator new should be reheap's, with "beside" when it should not.
#include <reheap/reheap.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

int failures = 0;

void expect(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "consumer: not so: %s\n", what);
  failures++;
}

struct alignas(256) Wide {
  char bytes[256];
};

bool throws_bad_alloc(std::size_t size) {
  try {
    ::operator delete(::operator new(size));  // called, unlike a new expression, as written
    return false;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const bool serves = std::strcmp(arguments[1], "serves") == 0;

  auto number = std::make_unique<int>(1);
  auto wide = std::make_unique<Wide>();
  expect(rh_owns(number.get()) == serves, "operator new is whose it should be");
  expect(rh_owns(wide.get()) == serves, "aligned operator new is whose it should be");
  expect(reinterpret_cast<std::uintptr_t>(wide.get()) % alignof(Wide) == 0, "alignment holds");

  // libstdc++'s own code allocates these.
  std::vector<std::string> lines(100, std::string(100, 'x'));
  std::thread([&lines] { lines.assign(200, std::string(50, 'y')); }).join();
  expect(lines[199][49] == 'y' && rh_owns(lines[199].data()) == serves, "strings live where they should");

  volatile std::size_t most = SIZE_MAX / 4;
  expect(throws_bad_alloc(most), "an impossible request throws std::bad_alloc");

  void* block = rh_malloc(100);
  expect(block && rh_owns(block), "rh_malloc gives a block of its own");
  rh_free(block);
  return failures != 0;
}
