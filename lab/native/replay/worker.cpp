#include "replay/workload.h"

#include <cstdio>
#include <cstdlib>

#include "replay/stream.h"

namespace lab {
namespace {

using compiled::Kind;

std::uint64_t mixed(std::uint64_t value) {  // the finalizer of SplitMix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

class Worker {
 public:
  Worker(Workload& load, std::uint64_t thread, std::uint8_t* window)
      : load_(load), ledger_(*load.ledger), thread_(thread),
        stream_(load.file, load.threads[thread].first_chunk, window),
        next_seed_(mixed((std::uint64_t{load.copy} << 40) + thread)) {}

  void run() {
    Operation operation{};
    told_ = static_cast<std::uint32_t>(load_.threads[thread_].first_epoch);  // as the table has it
    enter(told_);
    while (next(operation))
      if (operation.kind == Kind::kEpoch)
        enter(epoch_ + static_cast<std::uint32_t>(operation.amount));
      else if (operation.kind == Kind::kAt)
        pace(operation.amount);
      else
        perform(operation);
    flush();
    ledger_.operations += count_;
    ledger_.handoff_waits += handoff_waits_;
    ledger_.handoff_wait_ns += handoff_wait_ns_;
    ledger_.epoch_waits += epoch_waits_;
    ledger_.epoch_wait_ns += epoch_wait_ns_;
    load_.set_next(thread_, Workload::kEnded);
  }

 private:
  static constexpr std::uint64_t kAlignmentBits = 63;

  bool next(Operation& operation) {
    if (!stream_.next(operation)) {
      std::fprintf(stderr, "reheap-replay: the compiled trace changed while it was replayed\n");
      std::_Exit(125);
    }
    return operation.kind != Kind::kEnd;
  }

  void enter(std::uint32_t epoch) {
    epoch_ = epoch;
    if (load_.matters(told_, epoch)) tell();
    if (load_.may_work_in(epoch)) return;
    tell();
    const std::uint64_t begin = sys::now_ns();
    load_.await(epoch);
    ++epoch_waits_;
    epoch_wait_ns_ += sys::now_ns() - begin;
  }

  // How far it has come. To be told before any wait: others may wait for that.
  void tell() {
    if (load_.settings.strict) flush();
    if (told_ == epoch_) return;
    told_ = epoch_;
    load_.set_next(thread_, epoch_);
  }

  void pace(std::uint64_t ns) {
    time_ns_ += ns;
    if (!load_.settings.recorded_pace) return;
    tell();
    sys::sleep_until(load_.start_ns + time_ns_);
  }

  void perform(const Operation& operation) {
    ++count_;
    Slot& slot = load_.slots[operation.slot];
    if (operation.remote) await(slot, operation.generation);
    const bool there = (slot.generation.load(std::memory_order_acquire) & 1) != 0;
    const bool wanted = operation.kind == Kind::kFree || operation.kind == Kind::kRealloc;
    if (there != wanted) {
      ++ledger_.ordering_errors;
      return;
    }
    if (operation.kind == Kind::kFree)
      release(slot, operation);
    else if (operation.kind == Kind::kRealloc)
      resize(slot, operation);
    else
      allocate(slot, operation);
  }

  void await(Slot& slot, std::uint32_t generation) {
    if (slot.generation.load(std::memory_order_acquire) == generation) return;
    tell();
    const std::uint64_t begin = sys::now_ns();
    unsigned spins = load_.spins;
    for (;;) {
      const std::uint32_t seen = slot.generation.load(std::memory_order_acquire);
      const auto behind = static_cast<std::int32_t>(generation - seen);
      if (behind < 0) ++ledger_.ordering_errors;
      // After one error others follow, and what is waited for may never come.
      if (behind <= 0 || ledger_.ordering_errors.load(std::memory_order_relaxed) != 0) break;
      if (spins != 0) {
        --spins;
        sys::pause();
        continue;
      }
      // The one who changes the generation may not see this in time; then the sleep ends by itself.
      slot.awaited.store(1);
      sys::wait(slot.generation, seen, Workload::kLongestSleep);
    }
    ++handoff_waits_;
    handoff_wait_ns_ += sys::now_ns() - begin;
  }

  void publish(Slot& slot, std::uint32_t steps) {
    slot.generation.store(slot.generation.load(std::memory_order_relaxed) + steps, std::memory_order_release);
    if (slot.awaited.load(std::memory_order_relaxed) == 0) return;
    slot.awaited.store(0, std::memory_order_relaxed);
    sys::wake(slot.generation);
  }

  void allocate(Slot& slot, const Operation& operation) {
    const bool aligned = operation.kind == Kind::kAligned && operation.alignment_log2 != 0;
    const std::size_t alignment =
        aligned ? std::size_t{1} << operation.alignment_log2 : natural_alignment(operation.size);
    void* block = aligned                           ? sys::allocate_aligned(operation.size, alignment)
                  : operation.kind == Kind::kCalloc ? std::calloc(1, operation.size)
                                                    : std::malloc(operation.size);
    slot.block = block;
    slot.seed = next_seed(operation);
    changed(static_cast<std::int64_t>(operation.size));
    if (block) {
      if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0) ++ledger_.alignment_errors;
      first_use(slot, operation);
    } else if (operation.size != 0) {
      ++ledger_.failed_allocations;
    }
    publish(slot, 1);
  }

  // No two blocks of a thread have the same; its lowest bits are the logarithm of the alignment asked for, if any.
  std::uint64_t next_seed(const Operation& operation) {
    next_seed_ += kAlignmentBits + 1;
    return (next_seed_ & ~kAlignmentBits) |
           (operation.kind == Kind::kAligned ? operation.alignment_log2 & kAlignmentBits : 0);
  }

  void first_use(Slot& slot, const Operation& operation) {
    const std::uint64_t used = used_of(operation.size, operation.touched);
    if (operation.kind == Kind::kCalloc && !Contents(slot.block, 0).zeroed(used, touch())) ++ledger_.content_errors;
    Contents(slot.block, slot.seed).fill(0, used, touch());
  }

  // What malloc owes a block of this size: C lets small ones be less aligned.
  static std::size_t natural_alignment(std::uint64_t size) {
    constexpr std::size_t most = 2 * sizeof(void*);
    return size >= most ? most : 1;
  }

  void release(Slot& slot, const Operation& operation) {
    if (slot.block) verify(slot, used_of(operation.size, operation.touched));
    give_back(slot);
    changed(-static_cast<std::int64_t>(operation.size));
    publish(slot, 1);
  }

  static void give_back(Slot& slot) {
    if (slot.seed & kAlignmentBits)
      sys::free_aligned(slot.block);
    else
      std::free(slot.block);
    slot.block = nullptr;
  }

  // A block that could not be had earlier begins here, without contents.
  void resize(Slot& slot, const Operation& operation) {
    const std::uint64_t old_used = slot.block ? used_of(operation.old_size, operation.old_touched) : 0;
    if (slot.block) verify(slot, old_used);
    const std::uint64_t log2 = slot.seed & kAlignmentBits;
    void* block = log2 ? sys::reallocate_aligned(slot.block, operation.size, std::size_t{1} << log2)
                       : std::realloc(slot.block, operation.size);
    if (!block && operation.size != 0) {
      ++ledger_.failed_allocations;
      give_back(slot);  // the old block stayed, which is not as long as what follows takes it for
    }
    slot.block = block;  // some allocators free what is resized to nothing
    if (block) grown(slot, old_used, operation);
    changed(static_cast<std::int64_t>(operation.size - operation.old_size));
    publish(slot, 2);
  }

  // The old contents must have come along; what is new is filled.
  void grown(Slot& slot, std::uint64_t old_used, const Operation& operation) {
    const std::uint64_t used = used_of(operation.size, operation.touched);
    const std::uint64_t kept = std::min(old_used, operation.size);
    const bool end_written = kept == old_used;
    Contents contents(slot.block, slot.seed);
    const std::uint64_t checked = end_written ? kept : std::min<std::uint64_t>(kept, 8);
    if (!contents.intact(0, checked, end_written ? touch() : Touch::kEnds)) ++ledger_.content_errors;
    contents.fill(kept, used, touch());
    contents.fill(used > 8 ? used - 8 : 0, used, Touch::kEnds);
  }

  void verify(const Slot& slot, std::uint64_t used) {
    if (!Contents(slot.block, slot.seed).intact(0, used, touch())) ++ledger_.content_errors;
  }

  std::uint64_t used_of(std::uint64_t size, std::uint32_t touched) const { return used_bytes(size, touched, touch()); }
  Touch touch() const { return load_.settings.touch; }

  void changed(std::int64_t bytes) {
    live_ += bytes;
    if (live_ >= load_.flush_bytes || -live_ >= load_.flush_bytes) flush();
  }

  void flush() {
    if (live_ != 0) ledger_.add_live(live_);
    live_ = 0;
  }

  Workload& load_;
  Ledger& ledger_;
  std::uint64_t thread_;
  Stream stream_;
  std::uint64_t next_seed_;
  std::uint32_t epoch_ = 0;
  std::uint32_t told_ = 0;
  std::int64_t live_ = 0;
  std::uint64_t time_ns_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t handoff_waits_ = 0;
  std::uint64_t handoff_wait_ns_ = 0;
  std::uint64_t epoch_waits_ = 0;
  std::uint64_t epoch_wait_ns_ = 0;
};

}  // namespace

void work(Workload& workload, std::uint64_t thread, std::uint8_t* window) { Worker(workload, thread, window).run(); }

}  // namespace lab
