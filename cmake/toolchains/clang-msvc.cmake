# Clang for the ABI of Microsoft's compiler, without Microsoft's headers and libraries, which cannot be had here: the
# headers are mingw-w64's, and what is linked brings its own start code. REHEAP_PROCESSOR: x86_64, arm64 or arm64ec.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR ${REHEAP_PROCESSOR})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES REHEAP_PROCESSOR)

set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_AR llvm-ar-19)
set(CMAKE_RANLIB llvm-ranlib-19)
set(CMAKE_LINKER lld-link-19)
set(CMAKE_RC_COMPILER llvm-rc-19)
string(REPLACE "arm64" "aarch64" target ${REHEAP_PROCESSOR})
string(REPLACE "aarch64ec" "arm64ec" target ${target})
set(CMAKE_C_COMPILER_TARGET ${target}-pc-windows-msvc)
set(CMAKE_CXX_COMPILER_TARGET ${target}-pc-windows-msvc)
# There is no C runtime to link: a library can be made, a program only with -nostdlib.
set(REHEAP_FREESTANDING ON)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_MSVC_RUNTIME_LIBRARY "")

# Clang says that it is a GCC, or mingw-w64's headers turn it away. The C++ headers are GCC's: of them src/ uses only
# what stands without a library.
execute_process(COMMAND clang-19 -print-resource-dir OUTPUT_VARIABLE resources
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND x86_64-w64-mingw32-g++-posix -print-file-name=include OUTPUT_VARIABLE mingw
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
# They know no ARM64EC: its names for an AMD64 would bring in AMD64's assembly.
set(disguise "")
if(REHEAP_PROCESSOR STREQUAL "arm64ec")
  set(disguise "-U__x86_64__ -U__x86_64 -U__amd64__ -U__amd64 -U_M_AMD64 -U_M_X64 -D__aarch64__=1 -D_M_ARM64=1")
endif()
set(headers "-nostdinc -isystem ${resources}/include -isystem /usr/share/mingw-w64/include")
# Notes for linkers which functions may be called by pointer, for programs with control-flow guard. Calls are not
# checked: that takes what the C runtime brings.
set(guard "")
if(REHEAP_PROCESSOR STREQUAL "x86_64")
  set(guard "-Xclang -cfguard-no-checks")
endif()
set(CMAKE_C_FLAGS_INIT "-ffreestanding -fgnuc-version=4.2.1 -D_UCRT ${guard} ${disguise} ${headers}")
set(CMAKE_CXX_FLAGS_INIT
  "-D__STRICT_ANSI__ -isystem ${mingw}/c++ -isystem ${mingw}/c++/x86_64-w64-mingw32 ${CMAKE_C_FLAGS_INIT}")

include(${CMAKE_CURRENT_LIST_DIR}/windows.cmake)
