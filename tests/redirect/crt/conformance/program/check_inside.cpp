// What a CRT allocates for itself and frees again: with blocks of both kinds about, each has to find its maker. The spy
// on the heap sees when one does not.
#include "checks.h"
#include "comparison/exported.h"

namespace {

void* early_file;

void* open_and_write() {
  void*(__cdecl * open)(const char*, const char*);
  int(__cdecl * put)(const char*, void*);
  if (!find(crt.module, "fopen", open) || !find(crt.module, "fputs", put)) return nullptr;
  void* file = open("NUL", "w");
  if (file != nullptr) put("something to keep in a buffer", file);
  return file;
}

void close(Line& line, void* file) {
  int(__cdecl * close_file)(void*);
  if (find(crt.module, "fclose", close_file)) line.say(" %d", close_file(file));
}

void check_files() {
  for (int i = 0; i < 20; i++) {
    Line line("a file of its own");
    close(line, open_and_write());
  }
}

void check_environment() {
  int(__cdecl * put)(const char*);
  if (!find(crt.module, "_putenv", put)) return;
  Line line("environment changed");
  for (int i = 0; i < 20; i++) {
    line.say(" %d", put("REHEAP_OTHER=one"));
    line.say("%d", put("REHEAP_OTHER=a value that is longer than the one before"));
    line.say("%d", put("REHEAP_OTHER="));
  }
}

void check_locales() {
  char*(__cdecl * set)(int, const char*);
  if (find(crt.module, "setlocale", set)) {
    Line line("locale changed");
    for (int i = 0; i < 10; i++) {
      line.say(set(0, "English_United States.1252") != nullptr ? " yes" : " no");
      line.say(set(0, "C") != nullptr ? " yes" : " no");
    }
  }
  void*(__cdecl * make)(int, const char*);
  void(__cdecl * destroy)(void*);
  if (!find(crt.module, "_create_locale", make) || !find(crt.module, "_free_locale", destroy)) return;
  for (int i = 0; i < 5; i++) {
    Line line("a locale of its own");
    void* locale = make(0, "C");
    line.say(locale != nullptr ? " block" : " null");
    if (locale != nullptr) destroy(locale);
  }
}

unsigned __stdcall allocate_in_thread(void* size) {
  void* block = crt.plain.malloc(reinterpret_cast<size_t>(size));
  crt.plain.free(block);
  return block != nullptr ? 0 : 1;
}

void check_threads() {
  uintptr_t(__cdecl * begin)(void*, unsigned, unsigned(__stdcall*)(void*), void*, unsigned, unsigned*);
  if (!find(crt.module, "_beginthreadex", begin)) return;
  Line line("threads of its own");
  for (size_t i = 1; i <= 10; i++) {
    uintptr_t handle = begin(nullptr, 0, allocate_in_thread, reinterpret_cast<void*>(i * 1000), 0, nullptr);
    HANDLE thread = reinterpret_cast<HANDLE>(handle);
    WaitForSingleObject(thread, INFINITE);
    DWORD status = 2;
    GetExitCodeThread(thread, &status);
    CloseHandle(thread);
    line.say(" %lu", status);
  }
}

}  // namespace

void make_early_inside() { early_file = open_and_write(); }

void check_inside() {
  if (early_file != nullptr) {
    Line line("early file");
    close(line, early_file);
  }
  check_files();
  check_environment();
  check_locales();
  check_threads();
}
