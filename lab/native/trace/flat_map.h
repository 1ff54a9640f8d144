// A hash table from addresses to small values, open addressing: what is alive, without an allocation for each block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace trace {

template <typename Value> class FlatMap {
 public:
  FlatMap() : cells_(1024) {}

  size_t size() const { return size_; }

  Value* find(uint64_t key) {
    for (size_t i = home(key);; i = after(i)) {
      if (!cells_[i].there) return nullptr;
      if (cells_[i].key == key) return &cells_[i].value;
    }
  }

  // `key` must not be there. The pointer holds until the next change.
  Value* insert(uint64_t key, Value value) {
    if (size_ * 4 >= cells_.size() * 3) grow();
    ++size_;
    return put(key, std::move(value));
  }

  // Later cells of the same run move up, so that no find ends at the gap.
  void erase(uint64_t key) {
    size_t gap = home(key);
    while (cells_[gap].key != key || !cells_[gap].there) gap = after(gap);
    for (size_t i = after(gap); cells_[i].there; i = after(i)) {
      if (((i - home(cells_[i].key)) & mask()) < ((i - gap) & mask())) continue;
      cells_[gap] = std::move(cells_[i]);
      gap = i;
    }
    cells_[gap] = {};
    --size_;
  }

  template <typename Visit> void each(Visit visit) {
    for (Cell& cell : cells_)
      if (cell.there) visit(cell.key, cell.value);
  }

 private:
  struct Cell {
    uint64_t key = 0;
    Value value{};
    bool there = false;
  };

  size_t mask() const { return cells_.size() - 1; }
  size_t after(size_t i) const { return (i + 1) & mask(); }
  size_t home(uint64_t key) const { return static_cast<size_t>((key * 0x9e3779b97f4a7c15) >> 20) & mask(); }

  Value* put(uint64_t key, Value value) {
    size_t i = home(key);
    while (cells_[i].there) i = after(i);
    cells_[i] = {key, std::move(value), true};
    return &cells_[i].value;
  }

  void grow() {
    std::vector<Cell> old(cells_.size() * 2);
    old.swap(cells_);
    for (Cell& cell : old)
      if (cell.there) put(cell.key, std::move(cell.value));
  }

  std::vector<Cell> cells_;
  size_t size_ = 0;
};

}  // namespace trace
