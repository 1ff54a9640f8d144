// Another allocator in the place of reheap.dll, for comparison: `reheap.exe run --dll`, the same patcher, the same
// functions replaced, REHEAP_LAYERS. Each thing replaced is told on stderr as a line of JSON, so that a run can be
// proven.
#include <windows.h>

#include "base/text.h"
#include "peer.h"
#include "redirect/crt/modules.h"
#include "redirect/crt/redirect.h"
#include "redirect/heap/layer.h"
#include "redirect/process/children.h"

namespace rh::peers {

namespace {

constexpr char kLeft[] = "it could not be replaced";

void say(Text& text) {
  text << '\n';
  DWORD written = 0;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), text.data(), static_cast<DWORD>(text.length()), &written, nullptr);
}

void begin(Text& text) {
  (text << "peer: {\"name\":").quoted(peer_name) << ",\"pid\":";
  text.decimal(GetCurrentProcessId());
}

void say_replaced(const char* what, const char* problem) {
  Text text;
  begin(text);
  (text << (problem == nullptr ? ",\"replaced\":" : ",\"left\":")).quoted(what);
  if (problem != nullptr) (text << ",\"because\":").quoted(problem);
  text << '}';
  say(text);
}

void came(const redirect::Module& module) {
  if (!redirect::is_new_runtime(module)) return;
  char name[32] = {};
  for (size_t i = 0; i + 1 < sizeof name && i < module.length; ++i) name[i] = static_cast<char>(module.name[i]);
  say_replaced(name, redirect::replace(module) ? nullptr : kLeft);
}

bool wants(const char* layer) {
  char text[16] = "both";
  GetEnvironmentVariableA("REHEAP_LAYERS", text, sizeof text);
  return same_text(text, layer) || same_text(text, "both");
}

void replace_runtimes() {
  redirect::watch_modules({came, redirect::forget});
  redirect::for_each_module(came);
}

void attach(HINSTANCE self) {
  inject::Settings settings;
  const bool launched = inject::receive(settings);
  peer_start();
  if (wants("heap")) say_replaced("ntdll.dll", heaps::replace() ? nullptr : kLeft);
  if (wants("crt")) replace_runtimes();
  if (launched) inject::follow_children(self, settings);
  inject::arrive();
}

}  // namespace
}  // namespace rh::peers

extern "C" {

// The launcher makes programs import ordinal 1.
__declspec(dllexport) void peer_here();
void peer_here() {}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, void* process_ends);

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, void*) {
  if (reason == DLL_PROCESS_ATTACH) rh::peers::attach(self);
  if (reason == DLL_THREAD_DETACH) peer_thread_ends();
  return TRUE;
}
}
