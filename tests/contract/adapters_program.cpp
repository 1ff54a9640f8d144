// reheap.hpp as a consumer uses it: its allocators, memory resource, heaps and pointers with the standard library's
// containers. Compiled as C++17, C++20 and C++23, and without exceptions; it says what failed, and exits with 1.
#include <reheap/reheap.hpp>

#include <cstdint>
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <scoped_allocator>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

int g_failures = 0;

void check(bool sound, const char* what, int line) {
  if (sound) return;
  std::printf("line %d: %s\n", line, what);
  ++g_failures;
}
#define CHECK(condition) check((condition), #condition, __LINE__)

struct alignas(256) Wide {
  unsigned char bytes[256];
};

bool is_aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

std::size_t blocks_in(const reheap::heap& heap) {
  std::size_t count = 0;
  CHECK(heap.walk([&](void*, std::size_t) { ++count; }));
  return count;
}

// ---- what the standard asks of allocators -------------------------------------------------------

template <typename Allocator> using Traits = std::allocator_traits<Allocator>;

using Plain = reheap::allocator<int>;
static_assert(std::is_same_v<Traits<Plain>::rebind_alloc<char>, reheap::allocator<char>>);
static_assert(Traits<Plain>::is_always_equal::value);
static_assert(std::is_empty_v<Plain>, "a container is no longer for it");
static_assert(std::is_nothrow_copy_constructible_v<Plain> && std::is_nothrow_move_constructible_v<Plain>);

using Stateful = reheap::heap_allocator<int>;
static_assert(std::is_same_v<Traits<Stateful>::rebind_alloc<char>, reheap::heap_allocator<char>>);
static_assert(!Traits<Stateful>::is_always_equal::value);
static_assert(!Traits<Stateful>::propagate_on_container_copy_assignment::value);
static_assert(Traits<Stateful>::propagate_on_container_move_assignment::value);
static_assert(Traits<Stateful>::propagate_on_container_swap::value);
static_assert(!std::is_default_constructible_v<Stateful>, "it must have a heap");
static_assert(!std::is_constructible_v<Stateful, reheap::heap>, "which must not end at once");

static_assert(!std::is_copy_constructible_v<reheap::heap> && std::is_nothrow_move_constructible_v<reheap::heap>);
static_assert(!std::is_copy_assignable_v<reheap::heap> && std::is_nothrow_move_assignable_v<reheap::heap>);

void try_allocators() {
  const Plain plain;
  const reheap::allocator<char> of_chars(plain);
  CHECK(plain == of_chars && !(plain != of_chars) && Plain(of_chars) == plain);
  reheap::heap one, two;
  const Stateful in_one(one), in_two(two);
  const reheap::heap_allocator<char> chars(in_one);
  CHECK(in_one == chars && in_one != in_two && Stateful(chars) == in_one && !(in_one == in_two));
  Stateful allocator = in_one;
  int* numbers = Traits<Stateful>::allocate(allocator, 1000);
  CHECK(rh_heap_of(numbers) == one.get() && rh_usable_size(numbers) >= 1000 * sizeof(int));
  Traits<Stateful>::deallocate(allocator, numbers, 1000);
  CHECK(blocks_in(one) == 0);
}

// ---- containers ---------------------------------------------------------------------------------

template <typename T> using Vector = std::vector<T, reheap::allocator<T>>;
template <typename T> using HeapVector = std::vector<T, reheap::heap_allocator<T>>;
using HeapList = std::list<int, reheap::heap_allocator<int>>;
using HeapString = std::basic_string<char, std::char_traits<char>, reheap::heap_allocator<char>>;

void try_plain_containers() {
  Vector<Wide> wide(3);
  wide.resize(100);
  for (const Wide& each : wide) CHECK(is_aligned(&each, 256));
  CHECK(rh_owns(wide.data()) && rh_heap_of(wide.data()) == nullptr);
  std::map<int, Vector<int>, std::less<int>, reheap::allocator<std::pair<const int, Vector<int>>>> map;
  for (int key = 0; key < 100; ++key) map[key].assign(static_cast<std::size_t>(key), key);
  CHECK(map[7].size() == 7 && rh_owns(&map[7]));
  const auto copy = map;
  CHECK(copy == map);
  const auto shared = std::allocate_shared<Wide>(reheap::allocator<Wide>());
  CHECK(is_aligned(shared.get(), 256) && rh_owns(shared.get()));
}

void try_containers_of_heaps() {
  reheap::heap one, two;
  {
    HeapList first({1, 2, 3}, one), second({4, 5}, two);
    const int* node = &first.front();
    swap(first, second);
    CHECK(&second.front() == node && second.get_allocator() == Stateful(one));
    HeapList copy(second);
    CHECK(rh_heap_of(&copy.front()) == one.get() && copy == second);
    first = copy;  // stays where it is
    CHECK(rh_heap_of(&first.front()) == two.get() && first == copy);
    first = std::move(second);  // brings its heap along
    CHECK(&first.front() == node && rh_heap_of(node) == one.get());
    HeapList elsewhere(std::move(copy), two);
    CHECK(elsewhere.size() == 3 && rh_heap_of(&elsewhere.front()) == two.get());
  }
  CHECK(blocks_in(one) == 0 && blocks_in(two) == 0);
  using Inner = HeapVector<int>;
  using Outer = std::vector<Inner, std::scoped_allocator_adaptor<reheap::heap_allocator<Inner>>>;
  Outer outer{std::scoped_allocator_adaptor<reheap::heap_allocator<Inner>>(one)};
  outer.emplace_back(10, 1);
  CHECK(rh_heap_of(outer[0].data()) == one.get());
  HeapVector<Wide> wide(5, one);
  CHECK(is_aligned(wide.data(), 256));
  std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, reheap::heap_allocator<std::pair<const int, int>>>
      table(one);
  for (int key = 0; key < 1000; ++key) table[key] = key;
  CHECK(table.size() == 1000 && table[999] == 999);
}

// All of it goes with the heap, without a destructor: what a heap is good for.
void try_a_heap_that_ends_first() {
  reheap::heap heap = reheap::heap::bound();
  auto* list = ::new (heap.allocate(sizeof(HeapList))) HeapList(heap);
  for (int count = 0; count < 1000; ++count) list->push_back(count);
  CHECK(blocks_in(heap) >= 1000);
  heap.free_all();
  CHECK(blocks_in(heap) == 0);
}

void try_heaps_that_lie_somewhere() {
  alignas(16) static unsigned char memory[16384];
  static int near_here = 0;
  reheap::heap in = reheap::heap::in(memory, sizeof(memory));
  HeapList list(in);
  for (int count = 0; count < 100; ++count) list.push_back(count);
  CHECK(blocks_in(in) == 100 && rh_heap_of(&list.front()) == in.get());
  reheap::heap close_by = reheap::heap::near_to(&near_here, 1 << 20);
  HeapVector<Wide> wide(5, close_by);
  CHECK(is_aligned(wide.data(), 256) && rh_heap_of(wide.data()) == close_by.get());
}

// ---- std::pmr -----------------------------------------------------------------------------------

#if defined(__cpp_lib_memory_resource)
void try_memory_resources() {
  reheap::heap heap;
  reheap::memory_resource of_malloc, of_heap(heap), again(heap);
  CHECK(of_heap.is_equal(of_heap) && !of_heap.is_equal(of_malloc));
  CHECK(!of_heap.is_equal(*std::pmr::new_delete_resource()));
#if defined(__cpp_rtti)
  CHECK(of_heap == again && of_malloc == reheap::memory_resource());
#endif
  {
    std::pmr::vector<std::pmr::string> strings(&of_heap);
    for (int count = 0; count < 100; ++count) strings.emplace_back(100, 'x');
    CHECK(rh_heap_of(strings.data()) == heap.get() && rh_heap_of(strings[5].data()) == heap.get());
    std::pmr::vector<std::pmr::string> copy(strings, &of_malloc);
    CHECK(rh_owns(copy[5].data()) && rh_heap_of(copy[5].data()) == nullptr);
    std::pmr::monotonic_buffer_resource buffer(&again);
    std::pmr::vector<Wide> wide(7, &buffer);
    CHECK(is_aligned(wide.data(), 256));
  }
  CHECK(blocks_in(heap) == 0);
  for (std::size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    void* block = of_malloc.allocate(100, alignment);
    CHECK(is_aligned(block, alignment));
    of_malloc.deallocate(block, 100, alignment);
  }
}
#else
void try_memory_resources() {}
#endif

// ---- pointers -----------------------------------------------------------------------------------

int g_alive = 0;

struct Left {
  virtual ~Left() = default;
  int number = 1;
};
struct Right {
  virtual ~Right() = default;
  int number = 2;
};
struct Both : Left, Right {
  Both() { ++g_alive; }
  ~Both() override { --g_alive; }
};

void try_pointers() {
  reheap::heap heap;
  auto number = reheap::make_unique<int>(7);
  CHECK(*number == 7 && rh_owns(number.get()) && sizeof(number) == sizeof(int*));
  reheap::unique_ptr<const int> constant = std::move(number);
  CHECK(*constant == 7 && !number);
  reheap::unique_ptr<Right> base = reheap::make_unique_in<Both>(heap);
  CHECK(g_alive == 1 && base->number == 2 && rh_heap_of(base.get()) == heap.get());
  base.reset();
  CHECK(g_alive == 0 && blocks_in(heap) == 0);
  CHECK(is_aligned(reheap::make_unique<Wide>().get(), 256));
  const std::unique_ptr<void, reheap::deleter<void>> raw(rh_malloc(100));
  CHECK(raw != nullptr);
}

// ---- heaps --------------------------------------------------------------------------------------

void try_heaps() {
  reheap::heap heap;
  void* block = heap.allocate(100, 64);
  CHECK(is_aligned(block, 64) && rh_heap_of(block) == heap.get());
  reheap::heap moved = std::move(heap);
  CHECK(!heap && moved && rh_heap_of(block) == moved.get());
  heap = std::move(moved);
  CHECK(heap && !moved);
  int seen = 0;
  CHECK(heap.allocate(100) != nullptr && !heap.walk([&](void*, std::size_t) { return ++seen < 1; }) && seen == 1);
  CHECK(heap.stats().blocks >= 2);
  std::thread([&] { rh_free(block); }).join();
  CHECK(blocks_in(heap) == 1);
  const reheap::heap taken(heap.release());
  CHECK(!heap && taken);
}

#if defined(__cpp_exceptions)
// Sizes that no block can have, which compilers that see them warn of.
std::size_t unseen(std::size_t size) {
  std::size_t volatile hidden = size;
  return hidden;
}

template <typename Exception, typename Body> bool throws(Body body) {
  try {
    body();
  } catch (const Exception&) {
    return true;
  }
  return false;
}

struct Thrower {
  Thrower() { throw 1; }
};

void try_exceptions() {
  reheap::heap heap;
  heap.limit(1 << 20);
  HeapVector<int> numbers(10, 1, heap);
  CHECK(throws<std::bad_alloc>([&] { numbers.resize(1 << 20); }));
  CHECK(numbers.size() == 10 && numbers[9] == 1);
  CHECK(throws<std::bad_alloc>([&] { static_cast<void>(heap.allocate(unseen(SIZE_MAX))); }));
  CHECK(throws<std::bad_array_new_length>([] { static_cast<void>(Plain().allocate(unseen(SIZE_MAX / 2))); }));
  CHECK(
      throws<std::bad_alloc>([] { static_cast<void>(reheap::allocator<char>().allocate(unseen(SIZE_MAX / 2 + 1))); }));
  CHECK(throws<std::bad_alloc>([] { const reheap::heap none(nullptr); }));
  const std::size_t before = blocks_in(heap);
  CHECK(throws<int>([&] { static_cast<void>(reheap::make_unique_in<Thrower>(heap)); }));
  CHECK(blocks_in(heap) == before);
}
#else
void try_exceptions() {}
#endif

}  // namespace

int main() {
  try_allocators();
  try_plain_containers();
  try_containers_of_heaps();
  try_a_heap_that_ends_first();
  try_heaps_that_lie_somewhere();
  try_memory_resources();
  try_pointers();
  try_heaps();
  try_exceptions();
  return g_failures == 0 ? 0 : 1;
}
