// Many blocks, with contents, that need no memory beside themselves.
#pragma once

#include <cstdlib>

#include "support/pattern.h"
#include "support/scenario.h"

namespace contract {

// Blocks chained through their first words, so that keeping them needs no memory of its own.
struct Link {
  Link* next;
  std::size_t size;
  std::uint64_t seed;
};

class Chain {
 public:
  virtual void release(void* block) { free(block); }

  void add(void* block, std::size_t size) {
    auto* link = static_cast<Link*>(block);
    *link = {first_, size, mix(++count_)};
    fill(link + 1, size - sizeof(Link), link->seed);
    first_ = link;
    bytes_ += size;
  }

  void free_one() {
    Link* const link = first_;
    check(link);
    first_ = link->next;
    bytes_ -= link->size;
    release(link);
  }

  void free_until(std::size_t bytes) {
    while (bytes_ > bytes) free_one();
  }

  void check() const {
    for (const Link* link = first_; link; link = link->next) check(link);
  }

  // Without freeing them.
  void forget() {
    first_ = nullptr;
    bytes_ = 0;
  }

  Link* first() const { return first_; }
  std::size_t bytes() const { return bytes_; }

 private:
  static void check(const Link* link) {
    NEED(intact(link + 1, link->size - sizeof(Link), link->seed), "block of %zu", link->size);
  }

  Link* first_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace contract
