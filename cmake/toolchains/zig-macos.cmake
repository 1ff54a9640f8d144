# Zig's Clang and what it brings of macOS: the headers of the C library, and which names libSystem has. What is made
# here cannot run here. REHEAP_PROCESSOR: arm64 or x86_64.

set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR ${REHEAP_PROCESSOR})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REHEAP_PROCESSOR)

string(REPLACE "arm64" "aarch64" target ${REHEAP_PROCESSOR}-macos.13.0)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)

# There is no SDK of Apple's. What an installed file is called is what it is called here, so that this is not asked for.
set(CMAKE_OSX_SYSROOT "")
set(CMAKE_OSX_DEPLOYMENT_TARGET "")
set(CMAKE_INSTALL_NAME_TOOL ${CMAKE_COMMAND})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
