#include "entry/copies.h"

#include <atomic>

#include "base/counter.h"
#include "entry/rules.h"
#include "platform/platform.h"

namespace rh::copies {

namespace {

// Where another copy stands, and how many threads are asking it.
struct Place {
  std::atomic<const Copy*> copy{nullptr};
  std::atomic<uint32_t> askers{0};
};

// More than any program has: a process with as many plugins as this is out of room for their thread-local storage.
constexpr size_t kMost = 1024;
constinit Place g_places[kMost] = {};
constinit std::atomic<size_t> g_used{0};  // of these, from the first on

constinit std::atomic<bool> g_in_charge{false};

struct Others {
  Place* begin() const { return g_places; }
  Place* end() const { return g_places + g_used.load(std::memory_order_acquire); }
};

}  // namespace

bool is_own(const void* pointer) {
  const bool ours = kHardened ? hardened::holds(pointer) : in_realm(pointer);
  return ours || regions::find(pointer) != nullptr;
}

void meet(const Copy* other) {
  for (size_t index = 0; index < kMost; ++index) {
    std::atomic<const Copy*>& copy = g_places[index].copy;
    const Copy* none = nullptr;
    if (copy.load(std::memory_order_acquire) == other) return;
    if (copy.compare_exchange_strong(none, other, std::memory_order_acq_rel))
      return raise_to(g_used, index + 1, std::memory_order_release);
  }
}

// Not for ever: a thread may have been terminated while it asked, or be its parent's in a process that was forked.
static void wait_for_askers(const Place& place) {
  constexpr uint64_t kPatienceMs = 10'000;
  uint64_t late_at = platform::now_ms() + kPatienceMs;
  for (unsigned attempt = 0; place.askers.load(std::memory_order_seq_cst) != 0; ++attempt) {
    if (platform::others_are_gone() || platform::now_ms() >= late_at) return;
    platform::back_off(attempt);
  }
}

void forget(const Copy* other) {
  for (Place& place : Others()) {
    const Copy* expected = other;
    if (place.copy.compare_exchange_strong(expected, nullptr, std::memory_order_seq_cst)) wait_for_askers(place);
  }
}

// Asks the others in turn, until one made the block. True when there was one.
template <typename Question> static bool ask_maker_of(const void* pointer, Question question) {
  for (Place& place : Others()) {
    if (place.copy.load(std::memory_order_relaxed) == nullptr) continue;
    place.askers.fetch_add(1, std::memory_order_seq_cst);
    // Only now it can be relied on to stay: who forgets it sees this thread.
    const Copy* other = place.copy.load(std::memory_order_seq_cst);
    bool made_it = other != nullptr && other->owns(pointer);
    if (made_it) question(other);
    place.askers.fetch_sub(1, std::memory_order_release);
    if (made_it) return true;
  }
  return false;
}

void announce() {
  for_each_other([](const Copy* other) {
    meet(other);
    other->meet(this_copy());
  });
}

void take_charge() { g_in_charge.store(true, std::memory_order_relaxed); }
bool is_in_charge() { return g_in_charge.load(std::memory_order_relaxed); }

bool is_another_in_charge() {
  bool found = false;
  for (Place& place : Others()) {
    const Copy* other = place.copy.load(std::memory_order_acquire);
    found |= other != nullptr && tells_all(other) && other->is_in_charge();
  }
  return found;
}

void withdraw() {
  for (Place& place : Others())
    if (const Copy* other = place.copy.load(std::memory_order_acquire)) other->forget(this_copy());
}

bool made(const void* pointer) {
  if (regions::find(pointer) != nullptr) return true;
  return ask_maker_of(pointer, [](const Copy*) {});
}

bool bytes_from(const void* pointer, size_t* bytes) {
  if (Region* region = regions::find(pointer)) {
    *bytes = rules::asked_in_region(region, pointer, "realloc");
    return true;
  }
  return ask_maker_of(pointer, [=](const Copy* maker) { *bytes = maker->bytes_from(pointer); });
}

bool free(void* pointer) {
  if (rules::free_in_region(pointer)) return true;
  return ask_maker_of(pointer, [=](const Copy* maker) { maker->free(pointer); });
}

}  // namespace rh::copies
