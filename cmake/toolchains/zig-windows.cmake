# Zig's Clang and mingw-w64, on the UCRT. REHEAP_PROCESSOR: x86_64 or arm64.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR ${REHEAP_PROCESSOR})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REHEAP_PROCESSOR)

string(REPLACE "arm64" "aarch64" target ${REHEAP_PROCESSOR}-windows-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)

# Zig sets _WIN32_WINNT for its headers; who asks for a version may do so all the same.
string(APPEND CMAKE_C_FLAGS_INIT " -Wno-macro-redefined")
string(APPEND CMAKE_CXX_FLAGS_INIT " -Wno-macro-redefined")

string(REPLACE "x86_64" "i386:x86-64" machine ${REHEAP_PROCESSOR})
zig_tool(CMAKE_RC_COMPILER rc)
zig_tool(CMAKE_DLLTOOL dlltool -m ${machine})

include(${CMAKE_CURRENT_LIST_DIR}/windows.cmake)
