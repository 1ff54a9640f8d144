// reheap for C++17 and later: what the standard library's containers and pointers take, over the C interface. Header
// only; a program that includes it links one of the two libraries that reheap.h names.
//
// Where the C interface gives NULL these throw std::bad_alloc or, compiled without exceptions, end the process. They do
// not ask the new-handler. Alignments of any object are kept.
#ifndef REHEAP_REHEAP_HPP
#define REHEAP_REHEAP_HPP

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "reheap.hpp is for C++17 and later: pass -std=c++17 (Microsoft's compiler: /std:c++17), or include reheap.h"
#endif

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__has_include)
#if __has_include(<memory_resource>)
#include <memory_resource>
#endif
#endif

#include "reheap/reheap.h"

namespace reheap {

namespace detail {

// Every block has it.
inline constexpr std::size_t block_alignment = 16;

[[noreturn]] inline void fail() {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

[[noreturn]] inline void fail_length() {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
  throw std::bad_array_new_length();
#else
  std::abort();
#endif
}

// From a heap; of none as rh_malloc does.
inline void* allocate(rh_heap* heap, std::size_t size, std::size_t alignment) {
  void* block = nullptr;
  if (alignment <= block_alignment)
    block = heap == nullptr ? rh_malloc(size) : rh_heap_malloc(heap, size);
  else
    block = heap == nullptr ? rh_aligned_alloc(alignment, size) : rh_heap_aligned_alloc(heap, alignment, size);
  if (block == nullptr) fail();
  return block;
}

// Of any heap.
inline void deallocate(void* block, std::size_t size, std::size_t alignment) noexcept {
  if (alignment <= block_alignment)
    rh_free_sized(block, size);
  else
    rh_free_aligned_sized(block, alignment, size);
}

template <typename T> T* allocate_many(rh_heap* heap, std::size_t count) {
  static_assert(sizeof(T) != 0, "T must be complete");
  if (count > SIZE_MAX / sizeof(T)) fail_length();
  return static_cast<T*>(allocate(heap, count * sizeof(T), alignof(T)));
}

template <typename T> void deallocate_many(T* block, std::size_t count) noexcept {
  deallocate(block, count * sizeof(T), alignof(T));
}

}  // namespace detail

// A first-class heap that ends with this object, and all blocks in it. Empty once it was moved from.
class heap {
 public:
  // One that all threads share.
  heap() : heap(rh_heap_create()) {}

  // One of the calling thread's alone (rh_heap_create_bound).
  static heap bound() { return heap(rh_heap_create_bound()); }

  // Takes over a heap that rh_heap_create made. Fails for NULL, so that the result of that can be given to it.
  explicit heap(rh_heap* taken_over) : heap_(taken_over) {
    if (heap_ == nullptr) detail::fail();
  }

  heap(heap&& other) noexcept : heap_(other.release()) {}
  heap& operator=(heap&& other) noexcept {
    heap taken(std::move(other));
    taken.swap(*this);
    return *this;
  }
  heap(const heap&) = delete;
  heap& operator=(const heap&) = delete;
  ~heap() { rh_heap_destroy(heap_); }

  // For the C interface.
  rh_heap* get() const noexcept { return heap_; }
  explicit operator bool() const noexcept { return heap_ != nullptr; }

  // Leaves the heap to the caller.
  rh_heap* release() noexcept { return std::exchange(heap_, nullptr); }
  void swap(heap& other) noexcept { std::swap(heap_, other.heap_); }
  friend void swap(heap& one, heap& other) noexcept { one.swap(other); }

  // As the functions of reheap.h. What is to be freed is freed by rh_free.
  [[nodiscard]] void* allocate(std::size_t size, std::size_t alignment = detail::block_alignment) {
    return detail::allocate(heap_, size, alignment);
  }
  void free_all() noexcept { rh_heap_reset(heap_); }
  std::size_t trim() noexcept { return rh_heap_trim(heap_); }
  void limit(std::size_t hard) noexcept { rh_heap_limit(heap_, hard); }
  rh_heap_stats stats() const noexcept {
    rh_heap_stats stats = {};
    stats.struct_size = sizeof(stats);
    rh_heap_stats_get(heap_, &stats);
    return stats;
  }

  // Calls `visit(block, usable_size)` for each block in use; one that returns bool stops the walk by false. As
  // rh_heap_walk, whose result it has. `visit` must not throw, which would pass through C.
  template <typename Visit> bool walk(Visit&& visit) const noexcept {
    using Visitor = std::remove_reference_t<Visit>;
    const auto call = [](void* block, std::size_t size, void* context) noexcept -> bool {
      Visitor& visitor = **static_cast<Visitor**>(context);
      if constexpr (std::is_convertible_v<std::invoke_result_t<Visitor&, void*, std::size_t>, bool>) {
        return visitor(block, size);
      } else {
        visitor(block, size);
        return true;
      }
    };
    Visitor* visitor = std::addressof(visit);
    return rh_heap_walk(heap_, call, &visitor);
  }

 private:
  rh_heap* heap_;
};

// What malloc of this library serves, as an allocator. All are equal.
template <typename T> class allocator {
 public:
  using value_type = T;
  using is_always_equal = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;

  constexpr allocator() noexcept = default;
  template <typename U> constexpr allocator(const allocator<U>&) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) { return detail::allocate_many<T>(nullptr, count); }
  void deallocate(T* block, std::size_t count) noexcept { detail::deallocate_many(block, count); }
};

template <typename T, typename U> constexpr bool operator==(const allocator<T>&, const allocator<U>&) noexcept {
  return true;
}
template <typename T, typename U> constexpr bool operator!=(const allocator<T>&, const allocator<U>&) noexcept {
  return false;
}

// Allocates from a first-class heap, which must outlive what is allocated. Two are equal when their heap is the same:
// rh_free would take either's blocks, but a container that had nodes of two heaps would lose some with the first.
//
// A container that is moved or swapped takes its memory along, and so its heap: it costs nothing, and swapping
// containers of two heaps is defined. A copy that is made of one is in the same heap; one that is assigned to stays
// where it is, as its maker chose.
template <typename T> class heap_allocator {
 public:
  using value_type = T;
  using is_always_equal = std::false_type;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  heap_allocator(rh_heap* from) noexcept : heap_(from) {}
  heap_allocator(const heap& from) noexcept : heap_(from.get()) {}
  heap_allocator(heap&&) = delete;
  template <typename U> heap_allocator(const heap_allocator<U>& other) noexcept : heap_(other.get()) {}

  [[nodiscard]] T* allocate(std::size_t count) { return detail::allocate_many<T>(heap_, count); }
  void deallocate(T* block, std::size_t count) noexcept { detail::deallocate_many(block, count); }

  rh_heap* get() const noexcept { return heap_; }

 private:
  rh_heap* heap_;
};

template <typename T, typename U>
bool operator==(const heap_allocator<T>& one, const heap_allocator<U>& other) noexcept {
  return one.get() == other.get();
}
template <typename T, typename U>
bool operator!=(const heap_allocator<T>& one, const heap_allocator<U>& other) noexcept {
  return one.get() != other.get();
}

#if defined(__cpp_lib_memory_resource)

// A memory resource for std::pmr: over what malloc of this library serves or a first-class heap, which must outlive it.
// Any thread may use it, as far as the heap allows. Two over the same are equal (only to itself, without RTTI).
class memory_resource : public std::pmr::memory_resource {
 public:
  memory_resource() noexcept = default;
  explicit memory_resource(rh_heap* from) noexcept : heap_(from) {}
  explicit memory_resource(const heap& from) noexcept : heap_(from.get()) {}
  explicit memory_resource(heap&&) = delete;
  memory_resource(const memory_resource&) = default;
  memory_resource& operator=(const memory_resource&) = default;

  // NULL: what malloc serves.
  rh_heap* get() const noexcept { return heap_; }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    return detail::allocate(heap_, size, alignment);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    detail::deallocate(block, size, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
#if defined(__cpp_rtti) || defined(_CPPRTTI)
    const auto* same = dynamic_cast<const memory_resource*>(&other);
    return same != nullptr && same->heap_ == heap_;
#else
    return this == &other;
#endif
  }

  rh_heap* heap_ = nullptr;
};

#endif

// Ends an object in a block of this library, of any heap. Of a class with virtual functions it may be given a pointer
// to a base, whose destructor is virtual.
template <typename T> struct deleter {
  static_assert(!std::is_array_v<T>, "who ends an array must know its length: use a std::vector");

  constexpr deleter() noexcept = default;
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  constexpr deleter(const deleter<U>&) noexcept {
    static_assert(std::is_same_v<std::remove_cv_t<T>, std::remove_cv_t<U>> || std::has_virtual_destructor_v<T>,
                  "to end an object by a base of it, that needs a virtual destructor");
  }

  void operator()(T* object) const noexcept {
    void* block = const_cast<std::remove_cv_t<T>*>(object);
    if constexpr (std::is_polymorphic_v<T>) block = const_cast<void*>(dynamic_cast<const volatile void*>(object));
    object->~T();
    rh_free(block);
  }
};

// The same for a block that has no object: of rh_malloc itself.
template <> struct deleter<void> {
  void operator()(void* block) const noexcept { rh_free(block); }
};

template <typename T> using unique_ptr = std::unique_ptr<T, deleter<T>>;

namespace detail {

template <typename T, typename... Arguments> unique_ptr<T> make(rh_heap* heap, Arguments&&... arguments) {
  // Until there is an object the block is ended without one: its constructor may throw.
  std::unique_ptr<void, deleter<void>> block(allocate(heap, sizeof(T), alignof(T)));
  T* object = ::new (block.get()) T(std::forward<Arguments>(arguments)...);
  static_cast<void>(block.release());
  return unique_ptr<T>(object);
}

}  // namespace detail

// An object in a block of its own; in a first-class heap, which must outlive it.
template <typename T, typename... Arguments> [[nodiscard]] unique_ptr<T> make_unique(Arguments&&... arguments) {
  return detail::make<T>(nullptr, std::forward<Arguments>(arguments)...);
}
template <typename T, typename... Arguments>
[[nodiscard]] unique_ptr<T> make_unique_in(heap& from, Arguments&&... arguments) {
  return detail::make<T>(from.get(), std::forward<Arguments>(arguments)...);
}

}  // namespace reheap

#endif
