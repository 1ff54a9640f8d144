// A program that defines some operators new and delete itself and leaves the others to the library: these go by its
// own, as the standard says. Its blocks begin behind a header, so that nobody else can free them.
//
//   REPLACED_SINGLE   operator new(size_t), operator delete(void*)
//   REPLACED_ARRAY    operator new[](size_t), operator delete[](void*)
//   REPLACED_ALIGNED  operator new(size_t, std::align_val_t), operator delete(void*, std::align_val_t)
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kHeader = 64;
constexpr int kMark = 0x5a;
constinit std::atomic<long> g_live{0}, g_made{0};

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(1);
}

#ifdef _WIN32
void* take(std::size_t alignment, std::size_t size) { return _aligned_malloc(size, alignment); }
void give_back(void* start) { _aligned_free(start); }
#else
void* take(std::size_t alignment, std::size_t size) { return aligned_alloc(alignment, size); }
void give_back(void* start) { free(start); }
#endif

[[maybe_unused]] void* make(std::size_t size, std::size_t alignment = kHeader) {
  auto* start = static_cast<unsigned char*>(take(alignment, (size + 2 * alignment - 1) / alignment * alignment));
  if (size > PTRDIFF_MAX / 2 || start == nullptr) throw std::bad_alloc();
  ++g_live;
  ++g_made;
  std::memset(start, kMark, kHeader);
  return start + alignment;
}

[[maybe_unused]] void drop(void* block, std::size_t alignment = kHeader) {
  if (block == nullptr) return;
  auto* start = static_cast<unsigned char*>(block) - alignment;
  for (std::size_t at = 0; at < kHeader; ++at) check(start[at] == kMark, "the block is the program's own");
  --g_live;
  give_back(start);
}

}  // namespace

#ifdef REPLACED_SINGLE
void* operator new(std::size_t size) { return make(size); }
void operator delete(void* block) noexcept { drop(block); }
#endif
#ifdef REPLACED_ARRAY
void* operator new[](std::size_t size) { return make(size); }
void operator delete[](void* block) noexcept { drop(block); }
#endif
#ifdef REPLACED_ALIGNED
void* operator new(std::size_t size, std::align_val_t alignment) { return make(size, std::size_t(alignment)); }
void operator delete(void* block, std::align_val_t alignment) noexcept { drop(block, std::size_t(alignment)); }
#endif

namespace {

struct Plain {
  long values[5];
};
struct alignas(128) Aligned {
  char bytes[200];
};
struct Thrower {
  Thrower() { throw 1; }
  long values[9];
};

// All expressions that make and end one, or several.
template <typename Kind> void make_and_end(std::size_t count) {
  delete new Kind;
  delete[] new Kind[count];
  delete new (std::nothrow) Kind;
  delete[] new (std::nothrow) Kind[count];
}

template <typename Make> void fail_in_constructor(Make make_one) {
  try {
    make_one();
    check(false, "a constructor throws");
  } catch (int) {}
}

void use_all_forms() {
  for (std::size_t round = 1; round < 300; ++round) {
    make_and_end<Plain>(round % 9 + 1);
    make_and_end<Aligned>(round % 3 + 1);
    fail_in_constructor([] { return new Thrower; });
    fail_in_constructor([] { return new Thrower[2]; });
    fail_in_constructor([] { return new (std::nothrow) Thrower; });
    fail_in_constructor([] { return new (std::nothrow) Thrower[2]; });
    ::operator delete(::operator new(round), round);
    ::operator delete[](::operator new[](round), round);
    ::operator delete(::operator new(round, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](round, std::nothrow), std::nothrow);
    constexpr auto kWide = std::align_val_t{256};
    ::operator delete(::operator new(round, kWide), round, kWide);
    ::operator delete[](::operator new[](round, kWide), round, kWide);
    ::operator delete(::operator new(round, kWide, std::nothrow), kWide, std::nothrow);
    ::operator delete[](::operator new[](round, kWide, std::nothrow), kWide, std::nothrow);
  }
}

void use_the_library() {
  std::map<std::string, std::vector<int>> map;
  for (std::size_t key = 0; key < 500; ++key) map[std::to_string(key) + std::string(key % 90, 'x')].resize(key % 40);
  std::thread([shared = std::make_shared<std::string>(100, 'x')] { use_all_forms(); }).join();
}

std::size_t volatile g_impossible = SIZE_MAX / 2 + 100;

}  // namespace

int main() {
  const long live = g_live;
  use_all_forms();
  use_the_library();
  check(g_live == live, "what was made was ended");
  check(g_made > 1000, "the program's own operators are called by the others");
  check(::operator new(g_impossible, std::nothrow) == nullptr, "what throws gives null");
  check(::operator new[](g_impossible, std::nothrow) == nullptr, "what throws gives null");
  check(g_live == live, "what was refused was not made");
  return 0;
}
