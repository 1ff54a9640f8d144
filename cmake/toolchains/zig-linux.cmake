# Zig's Clang for Linux: for another processor, or an older C library than this machine's.
#
#   REHEAP_TARGET  PROCESSOR-linux-LIBRARY, as Zig takes it: aarch64-linux-gnu.2.17

set(CMAKE_SYSTEM_NAME Linux)
set(target ${REHEAP_TARGET})
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR ${target})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REHEAP_TARGET)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)

# Of the machine's own folders only CMake's packages of headers are of use.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

# Programs for another processor run under QEMU, on Debian's C library for it.
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR
      qemu-${CMAKE_SYSTEM_PROCESSOR} -L /usr/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
endif()
