# Zig's Clang and mingw-w64, on the UCRT. REHEAP_PROCESSOR: x86_64 or arm64.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR ${REHEAP_PROCESSOR})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REHEAP_PROCESSOR REHEAP_ZIG)

if(NOT REHEAP_ZIG)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../../tools/fetch_windows.py zig
                  OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(REHEAP_ZIG ${folder}/zig CACHE FILEPATH "zig")
endif()

string(REPLACE "arm64" "aarch64" target ${REHEAP_PROCESSOR})
set(CMAKE_C_COMPILER ${REHEAP_ZIG} cc)
set(CMAKE_CXX_COMPILER ${REHEAP_ZIG} c++)
set(CMAKE_C_COMPILER_TARGET ${target}-windows-gnu)
set(CMAKE_CXX_COMPILER_TARGET ${target}-windows-gnu)

# To link a program without optimisation, as CMake's checks would, Zig first builds a C++ library for that: minutes.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Zig sets _WIN32_WINNT for its headers; who asks for a version may do so all the same. At -O0 it has checks whose
# library it leaves out of programs linked as optimised ones.
set(CMAKE_C_FLAGS_INIT "-Wno-macro-redefined -fno-sanitize=undefined")
set(CMAKE_CXX_FLAGS_INIT "-Wno-macro-redefined -fno-sanitize=undefined")

# CMake takes one word for these.
string(REPLACE "x86_64" "i386:x86-64" machine ${REHEAP_PROCESSOR})
foreach(tool "ar" "ranlib" "rc" "dlltool -m ${machine}")
  string(REGEX MATCH "^[a-z]+" name ${tool})
  set(script ${CMAKE_BINARY_DIR}/zig-${name})
  file(WRITE ${script} "#!/bin/sh\nexec '${REHEAP_ZIG}' ${tool} \"$@\"\n")
  file(CHMOD ${script} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_AR ${CMAKE_BINARY_DIR}/zig-ar)
set(CMAKE_RANLIB ${CMAKE_BINARY_DIR}/zig-ranlib)
set(CMAKE_RC_COMPILER ${CMAKE_BINARY_DIR}/zig-rc)
set(CMAKE_DLLTOOL ${CMAKE_BINARY_DIR}/zig-dlltool)

include(${CMAKE_CURRENT_LIST_DIR}/windows.cmake)
