// Resident and live memory through time, in a table of fixed size: when it is full, every second sample goes and the
// samples that follow are taken half as often.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/system.h"

namespace lab {

struct Sample {
  std::uint64_t time_ns;
  std::uint64_t resident;  // of the process, the replayer's own included
  std::uint64_t own;
  std::uint64_t commit;
  std::int64_t live;
  std::uint64_t cpu_ns;
};

class Samples {
 public:
  static constexpr std::size_t kMost = 4096;

  explicit Samples(std::uint64_t interval_ns)
      : interval_ns_(interval_ns), table_(static_cast<Sample*>(sys::map(bytes()))) {}

  static constexpr std::size_t bytes() { return kMost * sizeof(Sample); }
  std::uint64_t interval_ns() const { return interval_ns_; }
  std::size_t count() const { return count_; }
  const Sample& operator[](std::size_t i) const { return table_[i]; }

  void add(const Sample& sample) {
    if (count_ == kMost) thin_out();
    table_[count_++] = sample;
  }

 private:
  void thin_out() {
    count_ = 0;
    for (std::size_t i = 0; i < kMost; i += 2) table_[count_++] = table_[i];
    interval_ns_ *= 2;
  }

  std::uint64_t interval_ns_;
  Sample* table_;
  std::size_t count_ = 0;
};

}  // namespace lab
