#include "heap/watch.h"

namespace rh::watch {

namespace {

constinit std::atomic<unsigned> g_watchers{0};

void fill_table(bool watched) {
  platform::Unset& unset = platform::g_unset;
  for (size_t size = 0; size <= kTableMax; ++size)
    unset.classes[size].store(watched ? kNoClass : size_class::kTable[size]);
  unset.medium_sizes.store(watched ? 0 : kMaxSmall - kTableMax);
}

// Who changes the watchers fills the table until it agrees with them: of several who do so at once the last to finish
// leaves it right.
void update_table() {
  unsigned watchers = 0;
  do {
    watchers = g_watchers.load();
    fill_table(watchers != 0);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } while (watchers != g_watchers.load());
}

}  // namespace

void begin(Watcher watcher) {
  g_watchers.fetch_or(static_cast<unsigned>(watcher));
  update_table();
}

void end(Watcher watcher) {
  g_watchers.fetch_and(~static_cast<unsigned>(watcher));
  update_table();
}

}  // namespace rh::watch
