// A plugin as programs load and unload them by the hundred: it allocates as it comes, when it is used, and as it goes.
#include <map>
#include <string>

namespace {

std::map<int, std::string> contents;

struct Presence {
  Presence() {
    for (int at = 0; at < 100; ++at)
      contents[at] = std::string(static_cast<std::size_t>(at) * 20, 'p');
  }
  ~Presence() { contents.clear(); }
};

Presence presence;
thread_local std::string own;

}  // namespace

extern "C" void chaos_use_and_free() {
  own = std::string(100000, 'q') + contents[50];
  own.clear();
  own.shrink_to_fit();
}
