#include "python_package.h"

#include "kernel.h"

#include <cstdint>

namespace rh::command {
namespace {

constexpr const char* package_name = "/reheap";
constexpr Str data_ending = ".data";

// A Python has its packages in lib/python3.13/site-packages, Debian's in dist-packages, PyPy in lib/pypy3.11.
constexpr const char* library_folders[] = {"/lib/", "/lib64/"};
constexpr const char* package_folders[] = {"/site-packages", "/dist-packages"};

// What getdents64 writes.
struct Entry {
  std::uint64_t number;
  std::int64_t next;
  std::uint16_t size;
  unsigned char kind;
  char name[];
};

bool is_there(Str path) {
  kernel::Status status;
  return kernel::status(path.data, status) == 0;
}

// python3.13 after python3.9.
bool is_newer(Str name, Str than) {
  if (name.size != than.size) return name.size > than.size;
  for (std::size_t at = 0; at < name.size; ++at)
    if (name.data[at] != than.data[at]) return name.data[at] > than.data[at];
  return false;
}

struct Newest {
  Str python;  // the name of its folder
  Str package;

  void consider(Str folder, Str name) {
    if (!name.starts_with("py") || !is_newer(name, python)) return;
    for (const char* packages : package_folders) {
      const Str found = join({folder, name, packages, package_name});
      if (!is_there(found)) continue;
      python = join({name});
      package = found;
    }
  }
};

void consider_all(Str path, Newest& newest) {
  const long folder = kernel::open(path.data);
  if (folder < 0) return;
  alignas(Entry) char entries[2048];
  for (long size; (size = kernel::read_folder(folder, entries, sizeof entries)) > 0;) {
    const Entry* entry = nullptr;
    for (long at = 0; at < size; at += entry->size) {
      entry = reinterpret_cast<const Entry*>(entries + at);
      newest.consider(path, entry->name);
    }
  }
  kernel::close(folder);
}

}  // namespace

Str python_package(Str prefix) {
  // pip install --target; an unpacked wheel, with scripts in NAME.data/scripts, to which uv links.
  const Str name = prefix.base_name();
  const bool is_unpacked = name.size > data_ending.size && name.part(name.size - data_ending.size) == data_ending;
  const Str root = is_unpacked ? prefix.directory() : prefix;
  if (const Str beside = join({root, package_name}); is_there(join({beside, "/lib"}))) return beside;
  Newest newest;
  for (const char* folder : library_folders) consider_all(join({prefix, folder}), newest);
  return newest.package;
}

}  // namespace rh::command
