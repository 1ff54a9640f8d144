// Blocks allocated before main, by a library's first constructor and by this program's own.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "support/library.h"

extern "C" bool early_blocks_sound();

namespace {

void* from_constructor = nullptr;

__attribute__((constructor(101))) void begin() {
  from_constructor = calloc(1, 70000);
  std::string text(500, 'e');
  if (from_constructor) std::memset(from_constructor, text[1], 70000);
}

struct Early {
  std::string* text = new std::string(1000, 's');
  ~Early() { delete text; }
};
__attribute__((init_priority(102))) Early early;

}  // namespace

int main() {
  const bool from_ours =
      !contract::on_reheap() || contract::server_of(dlsym(RTLD_DEFAULT, "malloc")) == contract::expected_server();
  const bool sound = early_blocks_sound();
  std::printf("library %d, constructor %d, server %d\n", sound, from_constructor != nullptr, from_ours);
  free(from_constructor);
  return sound && from_constructor && from_ours && early.text->size() == 1000 ? 0 : 1;
}
