// Files that say what the process may hold.
#include <stdlib.h>
#include <string.h>

#include "platform/fake/state.h"
#include "platform/linux/cgroup.h"

namespace rh::fake {

namespace {

using platform::cgroup::Files;

constinit pthread_mutex_t g_files_mutex = PTHREAD_MUTEX_INITIALIZER;
constinit uint64_t g_machine = 0;
constinit bool g_pressure = false;

// Few, short, and open one at a time by each thread.
struct File {
  char path[256];
  char text[4096];
};
constinit File g_files[32] = {};

struct Reader {
  const File* file;
  size_t at;
};
constinit Reader g_readers[16] = {};

File* find_file(const char* path) {
  for (File& file : g_files)
    if (strcmp(file.path, path) == 0) return &file;
  return nullptr;
}

intptr_t open_fixture(const char* path) {
  if (fails(Call::open)) return Files::kFailed;
  Guard guard(g_files_mutex);
  const File* file = find_file(path);
  if (file == nullptr) return Files::kNone;
  for (Reader& reader : g_readers) {
    if (reader.file != nullptr) continue;
    reader = {file, 0};
    return &reader - g_readers;
  }
  return Files::kFailed;
}

// In pieces, as the kernel may.
size_t read_fixture(intptr_t number, char* to, size_t size) {
  constexpr size_t kPiece = 37;
  Guard guard(g_files_mutex);
  Reader& reader = g_readers[number];
  size_t length = strlen(reader.file->text), left = length > reader.at ? length - reader.at : 0;
  if (size > left) size = left;
  if (size > kPiece) size = kPiece;
  memcpy(to, reader.file->text + reader.at, size);
  reader.at += size;
  return size;
}

void close_fixture(intptr_t number) {
  Guard guard(g_files_mutex);
  g_readers[number].file = nullptr;
}

}  // namespace

void set_file(const char* path, const char* text) {
  Guard guard(g_files_mutex);
  File* file = find_file(path);
  if (file == nullptr) file = find_file("");
  if (file == nullptr || (text != nullptr && strlen(text) >= sizeof(file->text))) abort();
  *file = {};
  if (text == nullptr) return;
  strncpy(file->path, path, sizeof(file->path) - 1);
  strncpy(file->text, text, sizeof(file->text) - 1);
}

void set_machine_memory(uint64_t bytes) { g_machine = bytes; }
void set_pressure(bool is_short) { g_pressure = is_short; }

}  // namespace rh::fake

namespace rh::platform {

static cgroup::Files fake_files() { return {fake::open_fixture, fake::read_fixture, fake::close_fixture}; }

Grant read_grant(uint64_t held) {
  cgroup::Files files = fake_files();
  return cgroup::read_grant(files, held);
}

uint64_t machine_memory() { return fake::g_machine; }

bool is_under_pressure() {
  cgroup::Files files = fake_files();
  return cgroup::is_under_pressure(files) || fake::g_pressure;
}

}  // namespace rh::platform
