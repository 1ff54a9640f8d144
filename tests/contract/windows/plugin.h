// What plugin.cpp offers: a DLL with a reheap of its own linked in.
#pragma once

#include <windows.h>

#include <cstddef>
#include <cstdlib>
#include <string>

struct Plugin {
  void* (*make)(std::size_t size);
  void* (*resize)(void* block, std::size_t size);
  std::size_t (*size_of)(void* block);
  void (*drop)(void* block);
  // At its end it frees the block by `drop`, and writes "detached\n" to the standard output.
  void (*drop_at_end)(void* block, void (*drop)(void*));
  // At its end it ends the process with that status.
  void (*terminate_at_end)(unsigned status);
  int (*callbacks)();  // of its thread-local storage, so far
};

using PluginEntry = const Plugin*();

// The library that a variable of the environment names. Wine knows a build machine's files as those of drive Z.
inline HMODULE load_named(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr) return nullptr;
  return LoadLibraryA((path[0] == '/' ? "Z:" + std::string(path) : std::string(path)).c_str());
}
