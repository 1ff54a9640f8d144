# Zig's Clang, which brings the C library of each system it builds for. zig-linux.cmake, zig-macos.cmake and
# zig-windows.cmake say for which: `target` is a triple as Zig takes it, CMAKE_SYSTEM_NAME and CMAKE_SYSTEM_PROCESSOR
# are set.

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REHEAP_ZIG)

if(NOT REHEAP_ZIG)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../../tools/fetch_windows.py zig
                  OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(REHEAP_ZIG ${folder}/zig CACHE FILEPATH "zig")
endif()

set(CMAKE_C_COMPILER ${REHEAP_ZIG} cc)
set(CMAKE_CXX_COMPILER ${REHEAP_ZIG} c++)
set(CMAKE_C_COMPILER_TARGET ${target})
set(CMAKE_CXX_COMPILER_TARGET ${target})

# To link a program without optimisation, as CMake's checks would, Zig first builds a C++ library for that: minutes.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# At -O0 Zig has checks whose library it leaves out of programs linked as optimised ones.
set(CMAKE_C_FLAGS_INIT "-fno-sanitize=undefined")
set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined")

# CMake takes one word for these: zig_tool(VARIABLE NAME WORD…).
function(zig_tool variable name)
  list(JOIN ARGN " " words)
  set(script ${CMAKE_BINARY_DIR}/zig-${name})
  file(WRITE ${script} "#!/bin/sh\nexec '${REHEAP_ZIG}' ${name} ${words} \"$@\"\n")
  file(CHMOD ${script} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set(${variable} ${script} PARENT_SCOPE)
endfunction()
zig_tool(CMAKE_AR ar)
zig_tool(CMAKE_RANLIB ranlib)
