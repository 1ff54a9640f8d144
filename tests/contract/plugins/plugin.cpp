// A library as programs load and unload it: it allocates when loaded, while in use and when unloaded.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

struct Contents {
  std::map<int, std::string> tree;
  std::vector<std::vector<int>> rows;

  Contents() {
    for (int at = 0; at < 200; ++at) tree[at] = std::string(static_cast<std::size_t>(at), 'p');
    rows.resize(50, std::vector<int>(500));
  }

  ~Contents() {
    tree[1000] = std::string(100000, 'q');
    rows.clear();
    free(malloc(70000));
  }
};

Contents contents;
void* kept = nullptr;

__attribute__((constructor)) void come() { kept = malloc(5000); }
__attribute__((destructor)) void go() {
  free(kept);
  free(malloc(100));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) char* plugin_make(std::size_t size) {
  return static_cast<char*>(contents.tree.size() == 200 ? malloc(size) : nullptr);
}
