#pragma once

#include <windows.h>

// The functions under test, by their exported names: kernel32's, and those of ntdll that they lead to.

// A way to the functions that both have.
struct Door {
  const char* name;
  void*(WINAPI* alloc)(HANDLE heap, DWORD flags, SIZE_T size);
  void*(WINAPI* realloc)(HANDLE heap, DWORD flags, void* block, SIZE_T size);
  BOOL (*free)(HANDLE heap, DWORD flags, void* block);
  SIZE_T(WINAPI* size)(HANDLE heap, DWORD flags, const void* block);
  BOOL (*validate)(HANDLE heap, DWORD flags, const void* block);
  BOOL (*lock)(HANDLE heap);
  BOOL (*unlock)(HANDLE heap);
  SIZE_T(WINAPI* compact)(HANDLE heap, DWORD flags);
  HANDLE (*create)(DWORD flags, SIZE_T initial, SIZE_T maximum);
  bool (*destroy)(HANDLE heap);
};

extern Door kernel32, ntdll;

// What ntdll alone has; NULL where it lacks it.
struct Rtl {
  BOOLEAN(WINAPI* GetUserInfoHeap)(HANDLE heap, ULONG flags, void* block, void** value, ULONG* user_flags);
  BOOLEAN(WINAPI* SetUserValueHeap)(HANDLE heap, ULONG flags, void* block, void* value);
  BOOLEAN(WINAPI* SetUserFlagsHeap)(HANDLE heap, ULONG flags, void* block, ULONG clear, ULONG set);
  ULONG(WINAPI* MultipleAllocateHeap)(HANDLE heap, ULONG flags, SIZE_T size, ULONG count, void** blocks);
  ULONG(WINAPI* MultipleFreeHeap)(HANDLE heap, ULONG flags, ULONG count, void** blocks);
  LONG(WINAPI* ZeroHeap)(HANDLE heap, ULONG flags);
  ULONG(WINAPI* GetProcessHeaps)(ULONG count, HANDLE* heaps);
  LONG(WINAPI* QueryHeapInformation)(HANDLE heap, int what, void* to, SIZE_T size, SIZE_T* needed);
  LONG(WINAPI* WalkHeap)(HANDLE heap, void* entry);
};

extern Rtl rtl;

// False when a function that every Windows has is not found.
bool find_functions();

const char* system_name();
