// A DLL that calls a function when it is detached at process exit.
#pragma once

extern "C" __declspec(dllimport) void at_farewell(void (*function)());
