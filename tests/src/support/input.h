// A fuzzer's bytes, read as decisions; and what a target does when something is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Not assert: it also holds in optimised builds.
#define FUZZ_EXPECT(condition) (static_cast<bool>(condition) ? void() : fuzz_failed(#condition, __FILE__, __LINE__))

[[noreturn]] inline void fuzz_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  bool more() const { return left_ != 0; }

  // 0 when there is no more.
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  uint32_t word() { return static_cast<uint32_t>(byte()) << 8 | byte(); }

  size_t below(size_t count) { return count <= 256 ? byte() % count : (word() << 8 | byte()) % count; }

  // Small ones often, large ones sometimes.
  size_t size_up_to(unsigned bits) {
    size_t most = size_t{1} << below(bits);
    return below(most + 1);
  }

 private:
  const uint8_t* data_;
  size_t left_;
};
