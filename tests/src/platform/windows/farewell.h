// A DLL that calls a function when it is detached because the process ends.
#pragma once

extern "C" __declspec(dllimport) void at_farewell(void (*function)());
