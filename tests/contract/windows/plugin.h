// The interface of plugin.cpp: a DLL with its own copy of reheap linked in.
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
  // On detach it frees the block by `drop`, and writes "detached\n" to the standard output.
  void (*drop_at_end)(void* block, void (*drop)(void*));
  // On detach it ends the process with that status.
  void (*terminate_at_end)(unsigned status);
  int (*callbacks)();  // TLS callbacks so far
};

using PluginEntry = const Plugin*();

// The library that an environment variable names. Wine maps the build machine's files to drive Z.
inline HMODULE load_named(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr) return nullptr;
  return LoadLibraryA((path[0] == '/' ? "Z:" + std::string(path) : std::string(path)).c_str());
}
