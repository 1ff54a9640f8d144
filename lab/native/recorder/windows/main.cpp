// reheap-record.dll: from the moment it is attached, every call of the allocation functions of C runtimes and of the
// system's heap is written down. `reheap.exe run --dll` brings it in, before any C runtime has begun; the programs that
// this one starts get it too.
#include <windows.h>

#include "base/text.h"
#include "redirect/crt/modules.h"
#include "redirect/heap/layer.h"
#include "redirect/process/children.h"
#include "settings.h"
#include "stream/recorder.h"
#include "thread_slot.h"

namespace {

using rh::redirect::Module;

void say(rh::Text& line) {
  line << '\n';
  DWORD written = 0;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), line.data(), static_cast<DWORD>(line.length()), &written, nullptr);
}

void came(const Module& module) {
  if (!rh::redirect::is_new_runtime(module) || rh::redirect::replace(module)) return;
  rh::Text line;
  line << "reheap record: not recorded: ";
  rh::redirect::describe(line, module.base);
  say(line);
}

// The trace begins with the heap: to make its file allocates, and any thread may hold the heap's lock later.
void record_heap() {
  recorder::process_started();
  if (rh::heaps::replace()) return;
  rh::Text line;
  line << "reheap record: not recorded: ";
  rh::heaps::describe(line);
  say(line);
}

void record_runtimes() {
  rh::redirect::watch_modules({came, rh::redirect::forget});
  rh::redirect::for_each_module(came);
}

void attach(HINSTANCE self) {
  rh::inject::Settings given;
  const bool launched = rh::inject::receive(given);
  recorder::read_settings();
  if (recorder::settings().path[0] != 0 && recorder::begin_thread_slots()) {
    const uint32_t layers = recorder::settings().layers;
    if ((layers & trace::kSystemHeap) != 0) record_heap();
    if ((layers & trace::kRuntimes) != 0) record_runtimes();
  }
  if (!launched) return;
  if (!recorder::settings().children) given.follow_children = 0;
  rh::inject::follow_children(self, given);
  rh::inject::arrive();
}

}  // namespace

extern "C" {

// The launcher makes programs import ordinal 1.
__declspec(dllexport) void record_here();
void record_here() {}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, void* process_ends);

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, void* process_ends) {
  if (reason == DLL_PROCESS_ATTACH) attach(self);
  if (recorder::g_slot_offset == 0) return TRUE;
  if (reason == DLL_THREAD_DETACH) {
    if (recorder::is_slot(recorder::thread_word())) recorder::thread_ended();
    recorder::forget_thread_slot();
  }
  if (reason == DLL_PROCESS_DETACH) {
    if (process_ends != nullptr) recorder::others_stopped();
    recorder::process_ended();
  }
  return TRUE;
}
}
