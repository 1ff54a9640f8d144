#include <windows.h>

static void (*g_function)() = nullptr;

extern "C" {

__declspec(dllexport) void at_farewell(void (*function)());
__declspec(dllexport) void at_farewell(void (*function)()) { g_function = function; }

BOOL WINAPI DllMain(HINSTANCE, DWORD reason, void* process_ends);
BOOL WINAPI DllMain(HINSTANCE, DWORD reason, void* process_ends) {
  if (reason == DLL_PROCESS_DETACH && process_ends != nullptr && g_function != nullptr) g_function();
  return TRUE;
}
}
