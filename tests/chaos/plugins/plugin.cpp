// A plugin as programs load and unload by the hundred: it allocates when loaded, when used and when unloaded. Several
// threads may use it at the same time.
#include <map>
#include <mutex>
#include <new>
#include <string>

namespace {

std::mutex contents_lock;
std::map<int, std::string> contents;

// Does without where memory is refused.
void allocate() {
  try {
    for (int at = 0; at < 100; ++at) contents[at] = std::string(static_cast<std::size_t>(at) * 20, 'p');
    contents[100] = std::string(100000, 'q');
  } catch (const std::bad_alloc&) {
    contents.clear();
  }
}

struct Presence {
  Presence() { allocate(); }
  ~Presence() { contents.clear(); }
};

Presence presence;

}  // namespace

extern "C" void chaos_use_and_free() {
  const std::lock_guard guard(contents_lock);
  contents.clear();
  allocate();
}
