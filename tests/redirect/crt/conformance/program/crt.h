#pragma once

#include <windows.h>

// The CRT under test. It is loaded by name and reached through its exports alone: this program is linked
// with kernel32 and ntdll, so that no other CRT is in the process.

using NewHandler = int(__cdecl*)(size_t);
using InvalidParameterHandler = void(__cdecl*)(const wchar_t*, const wchar_t*, const wchar_t*, unsigned, uintptr_t);

// X(member, exported name, result, parameters): what the three groups of twins have in common.
#define CRT_ALLOCATION(X)                                                                        \
  X(malloc, "malloc", void*, (size_t))                                                           \
  X(calloc, "calloc", void*, (size_t, size_t))                                                   \
  X(realloc, "realloc", void*, (void*, size_t))                                                  \
  X(free, "free", void, (void*))                                                                 \
  X(recalloc, "_recalloc", void*, (void*, size_t, size_t))                                       \
  X(expand, "_expand", void*, (void*, size_t))                                                   \
  X(msize, "_msize", size_t, (void*))                                                            \
  X(aligned_malloc, "_aligned_malloc", void*, (size_t, size_t))                                  \
  X(aligned_realloc, "_aligned_realloc", void*, (void*, size_t, size_t))                         \
  X(aligned_recalloc, "_aligned_recalloc", void*, (void*, size_t, size_t, size_t))               \
  X(aligned_free, "_aligned_free", void, (void*))                                                \
  X(aligned_msize, "_aligned_msize", size_t, (void*, size_t, size_t))                            \
  X(offset_malloc, "_aligned_offset_malloc", void*, (size_t, size_t, size_t))                    \
  X(offset_realloc, "_aligned_offset_realloc", void*, (void*, size_t, size_t, size_t))           \
  X(offset_recalloc, "_aligned_offset_recalloc", void*, (void*, size_t, size_t, size_t, size_t)) \
  X(heapchk, "_heapchk", int, ())                                                                \
  X(heapmin, "_heapmin", int, ())                                                                \
  X(heapwalk, "_heapwalk", int, (void*))                                                         \
  X(heap_handle, "_get_heap_handle", intptr_t, ())                                               \
  X(strdup, "_strdup", char*, (const char*))                                                     \
  X(wcsdup, "_wcsdup", wchar_t*, (const wchar_t*))                                               \
  X(mbsdup, "_mbsdup", unsigned char*, (const unsigned char*))                                   \
  X(dupenv, "_dupenv_s", int, (char**, size_t*, const char*))                                    \
  X(wdupenv, "_wdupenv_s", int, (wchar_t**, size_t*, const wchar_t*))                            \
  X(fullpath, "_fullpath", char*, (char*, const char*, size_t))                                  \
  X(wfullpath, "_wfullpath", wchar_t*, (wchar_t*, const wchar_t*, size_t))                       \
  X(getcwd, "_getcwd", char*, (char*, int))                                                      \
  X(wgetcwd, "_wgetcwd", wchar_t*, (wchar_t*, int))                                              \
  X(getdcwd, "_getdcwd", char*, (int, char*, int))                                               \
  X(wgetdcwd, "_wgetdcwd", wchar_t*, (int, wchar_t*, int))                                       \
  X(tempnam, "_tempnam", char*, (const char*, const char*))                                      \
  X(wtempnam, "_wtempnam", wchar_t*, (const wchar_t*, const wchar_t*))                           \
  X(getdays, "_Getdays", char*, ())                                                              \
  X(getmonths, "_Getmonths", char*, ())                                                          \
  X(gettnames, "_Gettnames", void*, ())                                                          \
  X(wgetdays, "_W_Getdays", wchar_t*, ())                                                        \
  X(wgetmonths, "_W_Getmonths", wchar_t*, ())                                                    \
  X(wgettnames, "_W_Gettnames", void*, ())                                                       \
  X(putenv, "_putenv", int, (const char*))                                                       \
  X(errno_address, "_errno", int*, ())                                                           \
  X(set_invalid_parameter_handler, "_set_invalid_parameter_handler", InvalidParameterHandler,    \
    (InvalidParameterHandler))                                                                   \
  X(callnewh, "_callnewh", int, (size_t))                                                        \
  X(set_new_mode, "_set_new_mode", int, (int))                                                   \
  X(query_new_mode, "_query_new_mode", int, ())                                                  \
  X(set_new_handler, "_set_new_handler", NewHandler, (NewHandler))                               \
  X(query_new_handler, "_query_new_handler", NewHandler, ())

// What a CRT has once.
#define CRT_COMMON(X)                                       \
  X(operator_new, "??2@YAPEAX_K@Z", void*, (size_t))        \
  X(operator_new_array, "??_U@YAPEAX_K@Z", void*, (size_t)) \
  X(operator_delete, "??3@YAXPEAX@Z", void, (void*))        \
  X(operator_delete_array, "??_V@YAXPEAX@Z", void, (void*))

#define CRT_MEMBER(member, name, result, parameters) result(__cdecl* member) parameters;

// One group of twins: the plain names, those of the `_o_` API set, or the `_base` names. The `_o_` twins are
// for parts of the system, and have an errno and handlers of their own.
struct Twins {
  const char* prefix;  // what stands before the plain name in this group's exports
  const char* suffix;
  CRT_ALLOCATION(CRT_MEMBER)
};

struct Crt {
  HMODULE module;
  Twins plain;
  Twins o;
  Twins base;
  CRT_COMMON(CRT_MEMBER)
};

extern Crt crt;

// False when the DLL cannot be loaded or is no CRT.
bool load_crt(const char* path);

// Who made the module, by what is in its image, and its file version.
bool made_by_wine();
void print_identity();

// Lines tell the side effects on the group that is exercised from now on: errno when it was set, calls of the invalid
// parameter handler and of the new handler.
void watch(const Twins& twins);

// The handler calls itself successful this many times more, then gives up.
void new_handler_succeeds(int times);
int __cdecl new_handler(size_t size);
