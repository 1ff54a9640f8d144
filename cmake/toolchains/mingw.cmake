# GCC of mingw-w64. A preset says for which processor and on which C runtime:
#
#   REHEAP_PROCESSOR  x86_64 or i686
#   REHEAP_CRT        ucrt (what today's Windows has) or msvcrt (the compiler's own default)

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR ${REHEAP_PROCESSOR})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REHEAP_PROCESSOR REHEAP_CRT)

set(tools ${REHEAP_PROCESSOR}-w64-mingw32)
# With -posix, <thread> and <mutex> are there: the tests use them.
set(CMAKE_C_COMPILER ${tools}-gcc-posix)
set(CMAKE_CXX_COMPILER ${tools}-g++-posix)
set(CMAKE_RC_COMPILER ${tools}-windres)

# Debian's GCC links msvcrt; its own specs with the other library's name make it link the UCRT. Its thread library was
# made for msvcrt too, and calls a setjmp that has another name in the UCRT.
if(REHEAP_CRT STREQUAL "ucrt")
  set(ucrt ${CMAKE_BINARY_DIR}/ucrt)
  file(WRITE ${ucrt}.def "LIBRARY api-ms-win-crt-private-l1-1-0.dll\nEXPORTS\n_setjmp == __intrinsic_setjmp\n")
  execute_process(COMMAND ${tools}-dlltool --def ${ucrt}.def --output-lib ${ucrt}-setjmp.a COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -dumpspecs OUTPUT_VARIABLE specs COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "-lmsvcrt" "-lucrt ${ucrt}-setjmp.a" specs "${specs}")
  file(WRITE ${ucrt}.specs "${specs}")
  set(CMAKE_C_FLAGS_INIT "-specs=${ucrt}.specs -D_UCRT")
  set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
endif()

# No DLL of the compiler's has to lie beside a program.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")

include(${CMAKE_CURRENT_LIST_DIR}/windows.cmake)
