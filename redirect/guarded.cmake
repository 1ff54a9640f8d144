# build/windows-x86_64-msvc/bin/reheap-guarded.dll: reheap.dll for processes that admit only libraries with a table for
# control-flow guard, or made for shadow stacks. GNU's linker makes neither, so Clang and LLD make it, for the ABI of
# Microsoft's compiler; there is no launcher beside it.

find_program(REHEAP_DLLTOOL NAMES llvm-dlltool-19 llvm-dlltool REQUIRED)
foreach(system ntdll kernel32)
  execute_process(COMMAND x86_64-w64-mingw32-g++-posix -print-file-name=lib${system}.a
                  OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND imports ${file})
endforeach()

add_library(reheap_guard OBJECT guard.c)
set(calls ${CMAKE_CURRENT_BINARY_DIR}/calls.lib)
set(objects $<TARGET_OBJECTS:reheap_dll_objects> $<TARGET_OBJECTS:reheap_core_objects>
            $<TARGET_OBJECTS:reheap_crt_objects> $<TARGET_OBJECTS:reheap_guard>)
set(parts reheap_redirect reheap_patcher reheap_process reheap_pe)
foreach(part IN LISTS parts)
  list(APPEND archives $<TARGET_FILE:${part}>)
endforeach()

# As reheap_make_dll links the others. /cetcompat: no code here returns to another place than it was called from, and no
# call is moved into a trampoline (patcher/emit_x86.cpp).
set(guarded ${PROJECT_BINARY_DIR}/bin/reheap-guarded.dll)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
add_custom_command(OUTPUT ${guarded}
  COMMAND ${REHEAP_DLLTOOL} -m i386:x86-64 -d ${CMAKE_CURRENT_SOURCE_DIR}/ntdll.def -l ${calls}
  COMMAND ${CMAKE_LINKER} /dll /out:${guarded} /implib:${CMAKE_CURRENT_BINARY_DIR}/guarded.lib /nodefaultlib
    /entry:DllMain /base:0x5E0000000 /dynamicbase /nxcompat /highentropyva /guard:cf /cetcompat /release /opt:ref
    /def:${CMAKE_CURRENT_SOURCE_DIR}/reheap.def ${objects} ${archives} ${calls} ${imports}
  DEPENDS ${objects} ${parts} ntdll.def reheap.def
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(reheap_guarded_dll ALL DEPENDS ${guarded})
if(PROJECT_IS_TOP_LEVEL)
  add_dependencies(products reheap_guarded_dll)
endif()
install(PROGRAMS ${guarded} DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ${REHEAP_INSTALLED}-guarded.dll)
