// reheap.dll: from the moment it is attached, the C runtimes of the process get their memory from reheap.
//
// It works however it comes in: first in the import table, so that it is attached before any runtime is initialised; as
// any import; or by LoadLibrary at a later time, with threads running and runtimes long in use. Blocks made before stay
// with their maker. Once something was replaced the DLL stays in the process until that ends: functions of ours may be
// running at any time, and blocks of ours are everywhere. At the end nothing is undone, so that every free stays valid.
//
// DllMain runs under the loader's lock: nothing here loads a DLL or waits.

#include "entry/copies.h"
#include "entry/describe.h"
#include "entry/options.h"
#include "entry/start.h"
#include "heap/registry.h"
#include "platform/report.h"
#include "platform/thread_slot.h"
#include "platform/windows/system.h"
#include "redirect/crt/modules.h"
#include "redirect/crt/redirect.h"
#include "redirect/crt/redirect_report.h"
#include "redirect/crt/replaced.h"
#include "redirect/heap/layer.h"
#include "redirect/process/children.h"
#include "redirect/process/kind.h"
#include "redirect/process/termination.h"

namespace rh::redirect {

namespace {

void stay() {
  HMODULE self = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                     reinterpret_cast<LPCWSTR>(&stay), &self);
}

void say(const char* what) {
  if (!options::verbose()) return;
  Text line;
  report(line << what);
}

void came(const Module& module) {
  if (!is_new_runtime(module)) return;
  if (replace(module)) stay();
  if (!options::verbose()) return;
  Text line;
  describe(line, module.base);
  report(line);
}

// Cygwin's fork makes a new process and copies into it, at the same places, what it knows of. It does not know of our
// memory, which may lie in one of those places there.
bool is_beside_cygwin() {
  for (const wchar_t* const* name = inject::kCygwinLibraries; *name != nullptr; ++name)
    if (GetModuleHandleW(*name) != nullptr) return true;
  return false;
}

void replace_heap() {
  if (!options::layer_heap()) return;
  if (heaps::replace()) stay();
  if (!options::verbose()) return;
  Text line;
  heaps::describe(line);
  report(line);
}

void replace_runtimes() {
  if (!options::layer_crt()) return;
  // First the news, then what there is: the loader's lock keeps anything from coming in between.
  if (!watch_modules({came, forget})) say("C runtimes loaded from now on are left: this Windows does not tell of them");
  for_each_module(came);
}

void watch_the_end() {
  if (*options::stats_target() == 0) return;
  const char* problem = watch_termination();
  if (problem == nullptr) return stay();
  Text line;
  report(line << "no statistics are written at TerminateProcess, which " << problem);
}

bool serves() { return heaps::is_replaced() || has_replaced(); }

void tell(const Text& line) { report(line); }

// What was asked for does not reach the malloc that the program brings.
bool tell_plain_program() {
  const copies::Copy* own = kHardened ? copies::copy_in_program() : nullptr;
  if (own == nullptr || (copies::tells_all(own) && own->hardened)) return false;
  Text line;
  tell(line << "the program's malloc is not hardened: reheap is linked in");
  return true;
}

bool tell_all_left() {
  const bool heap_left = heaps::was_left();
  if (heap_left) {
    Text line;
    heaps::describe(line);
    tell(line);
  }
  const bool program_left = tell_plain_program();
  return describe_left(tell) || heap_left || program_left;
}

// What is in the process already decides: at a runtime that comes later, the program runs.
void tell_left(inject::WhenLeft when) {
  if (when == inject::WhenLeft::nothing) return;
  // All was told as it went.
  const bool told = options::verbose() && when == inject::WhenLeft::tell;
  if (told || !tell_all_left() || when == inject::WhenLeft::tell) return;
  Text line;
  report(line << "the program is not run, because of --require");
  platform::end_process(inject::kRefused);
}

void attach(HMODULE self) {
  // This puts the program's headers back as they were before the launcher led them here.
  inject::Settings settings;
  const bool launched = inject::receive(settings);
  start();
  if (launched) copies::take_charge();
  copies::announce();
  if (is_beside_cygwin()) {
    say("everything is left to Cygwin, whose fork might find its places taken");
  } else if (!launched && copies::is_another_in_charge()) {
    say("everything is left to the library that the launcher brought");
  } else {
    replace_heap();
    replace_runtimes();
  }
  if (options::verbose()) tell_plain_program();
  describe::g_replaced = describe_replaced;
  describe::g_serves = serves;
  if (launched) {
    if (const char* problem = inject::follow_children(self, settings)) say(problem);
    tell_left(settings.when_left);
  }
  begin();
  watch_the_end();
  inject::arrive();
}

// Only a DLL that replaced nothing is ever unloaded. Blocks of its own may live on with others: then their memory
// stays.
void leave() {
  stop_watching();
  copies::withdraw();
  platform::stop_helper();
  platform::forget_faults();
  platform::forget_probes();
  end();
  registry::release_unused();
  platform::forget_thread_words();
}

}  // namespace
}  // namespace rh::redirect

extern "C" {

void rh_redirect_report(rh_write_fn write, void* context) {
  rh::Text text(write, context);
  if (rh::heaps::was_tried()) {
    rh::heaps::describe(text);
    text << '\n';
  }
  rh::redirect::describe(text);
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, void* process_ends);

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, void* process_ends) {
  switch (reason) {
  case DLL_PROCESS_ATTACH: rh::redirect::attach(self); break;
  case DLL_THREAD_DETACH: rh::platform::note_thread_end(); break;
  case DLL_PROCESS_DETACH: process_ends != nullptr ? rh::end() : rh::redirect::leave(); break;
  default: break;
  }
  return TRUE;
}
}
