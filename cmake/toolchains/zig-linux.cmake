# Zig's Clang for Linux: for another processor, or an older C library than this machine's.
#
#   REHEAP_TARGET  PROCESSOR-linux-LIBRARY, as Zig takes it: aarch64-linux-gnu.2.17

set(target ${REHEAP_TARGET})
string(REGEX MATCH "^[^-]+" processor ${target})
if(NOT processor STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${processor})
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REHEAP_TARGET)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)

# Of the machine's own folders only CMake's packages of headers are of use.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

# Programs for another processor run under QEMU, on Debian's C library for it.
if(NOT processor STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${processor} -L /usr/${processor}-linux-gnu)
endif()
