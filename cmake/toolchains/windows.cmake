# What the toolchains for Windows have in common.

# Headers and libraries come with the compiler; packages (CMake's own files) from here.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

# Tests run under Wine, when there is a Wine for the processor.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|i686)$")
  get_filename_component(REHEAP_WINE ${CMAKE_CURRENT_LIST_DIR}/../../tools/wine ABSOLUTE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${REHEAP_WINE})
endif()
