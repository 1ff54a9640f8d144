// A DLL with its own copy of reheap. It allocates when loaded, for each thread, and when unloaded.
#include "plugin.h"

#include <windows.h>

#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <map>
#include <string>

namespace {

std::map<int, std::string>* tree = nullptr;
void* last_block = nullptr;
void (*last_drop)(void*) = nullptr;
unsigned last_status = 0;
std::atomic<int> callbacks_seen{0};

void grow_tree() {
  tree = new std::map<int, std::string>;
  for (int at = 0; at < 200; ++at) (*tree)[at] = std::string(static_cast<std::size_t>(at), 'p');
}

void at_end() {
  if (last_block != nullptr) {
    last_drop(last_block);
    DWORD written = 0;
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), "detached\n", 9, &written, nullptr);
  }
  if (last_status != 0) TerminateProcess(GetCurrentProcess(), last_status);
}

const Plugin offered = {
    [](std::size_t size) { return malloc(size); },
    [](void* block, std::size_t size) { return realloc(block, size); },
    [](void* block) { return _msize(block); },
    [](void* block) { free(block); },
    [](void* block, void (*drop)(void*)) {
      last_block = block;
      last_drop = drop;
    },
    [](unsigned status) { last_status = status; },
    []() -> int { return callbacks_seen; },
};

void NTAPI on_thread(void*, DWORD, void*) {
  ++callbacks_seen;
  free(malloc(3000));
}

}  // namespace

extern "C" {
extern const PIMAGE_TLS_CALLBACK plugin_tls_callback;
__attribute__((section(".CRT$XLD"), used)) const PIMAGE_TLS_CALLBACK plugin_tls_callback = on_thread;

__declspec(dllexport) const Plugin* plugin() { return &offered; }
__declspec(dllexport) void* plain_make(std::size_t size) { return malloc(size); }
__declspec(dllexport) void plain_drop(void* block) { free(block); }

BOOL WINAPI DllMain(HINSTANCE, DWORD reason, void*) {
  if (reason == DLL_PROCESS_ATTACH) grow_tree();
  if (reason == DLL_PROCESS_DETACH) {
    delete tree;
    free(malloc(70000));
    at_end();
  }
  return TRUE;
}
}
