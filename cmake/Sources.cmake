# Which files of src/ belong to which part of a library, for the system and processor that the usual variables of CMake
# name. Sources are globbed: a file in the right folder is a file in the right library. Read by
# tools/amalgamate.cmake too.
#
#   REHEAP_PORTABLE_SOURCES, REHEAP_PLATFORM_SOURCES   the core
#   REHEAP_SELDOM_SOURCES                              of these, what does not run for malloc and free
#   REHEAP_HARDENED_SOURCES                            with those, the hardened core
#   REHEAP_FOREIGN_SYSTEM                              beside the system's malloc alone
#   REHEAP_LIFETIME, REHEAP_ALONE_SOURCES              in all libraries, but not in what has a DllMain
#   REHEAP_OVERRIDE_SOURCES, REHEAP_CRT_SOURCES        malloc, operator new; the rules of the C runtimes' functions
#   REHEAP_RUNTIME                                     what a static library knows of the C++ runtime
#   REHEAP_FAKE_SOURCES                                in place of the platform, for tests

set(REHEAP_SRC ${PROJECT_SOURCE_DIR}/src)

set(system linux)
if(WIN32)
  set(system windows)
elseif(APPLE)
  set(system darwin)
endif()

# How the realm lies: in one window, or in pieces anywhere.
set(realm window)
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  set(realm pieces)
endif()

# Builds look again whenever they run; a script runs once.
set(watched CONFIGURE_DEPENDS)
if(CMAKE_SCRIPT_MODE_FILE)
  set(watched)
endif()

file(GLOB REHEAP_PORTABLE_SOURCES ${watched}
  ${REHEAP_SRC}/base/*.cpp ${REHEAP_SRC}/arena/*.cpp ${REHEAP_SRC}/arena/${realm}/*.cpp ${REHEAP_SRC}/slabs/*.cpp
  ${REHEAP_SRC}/heap/*.cpp ${REHEAP_SRC}/platform/*.cpp ${REHEAP_SRC}/profile/*.cpp)
foreach(name api describe limit_option options profiling region_rules rules start)
  list(APPEND REHEAP_PORTABLE_SOURCES ${REHEAP_SRC}/entry/${name}.cpp)
endforeach()
list(APPEND REHEAP_PORTABLE_SOURCES ${REHEAP_SRC}/entry/${system}/origin.cpp)

# Options, reports and profiles.
file(GLOB REHEAP_SELDOM_SOURCES ${watched} ${REHEAP_SRC}/profile/*.cpp)
foreach(name base/text entry/limit_option entry/options entry/profiling entry/start heap/stats platform/desk
             platform/path platform/report)
  list(APPEND REHEAP_SELDOM_SOURCES ${REHEAP_SRC}/${name}.cpp)
endforeach()

# How copies of the library in one process come to know each other.
set(REHEAP_COPIES ${REHEAP_SRC}/entry/copies.cpp ${REHEAP_SRC}/entry/${system}/copy.cpp)
if(APPLE)
  set(REHEAP_COPIES ${REHEAP_SRC}/entry/darwin/copies.cpp)
endif()

file(GLOB REHEAP_PLATFORM_SOURCES ${watched} ${REHEAP_SRC}/platform/${system}/*.cpp)
list(APPEND REHEAP_PLATFORM_SOURCES ${REHEAP_COPIES})
if(NOT WIN32)
  # Frames are followed on Linux' x86-64 alone; Windows does it itself.
  set(whose posix)
  set(stacks no_stacks)
  if(system STREQUAL "linux" AND CMAKE_SIZEOF_VOID_P EQUAL 8 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(whose linux)
    set(stacks stacks)
  endif()
  file(GLOB others ${watched} ${REHEAP_SRC}/platform/posix/*.cpp ${REHEAP_SRC}/platform/${whose}/${stacks}/*.cpp)
  list(APPEND REHEAP_PLATFORM_SOURCES ${others})
endif()

file(GLOB REHEAP_HARDENED_SOURCES ${watched} ${REHEAP_SRC}/hardened/*.cpp)
list(APPEND REHEAP_HARDENED_SOURCES ${REHEAP_SRC}/entry/rules_hardened.cpp)

# Where pointers that are not ours go when malloc is the system's.
set(REHEAP_FOREIGN_SYSTEM ${REHEAP_SRC}/entry/${system}/foreign_system.cpp)

# How a library comes to know of its start and end; reheap.dll has a DllMain instead.
set(REHEAP_LIFETIME ${REHEAP_SRC}/entry/posix/lifetime.cpp)
if(WIN32)
  set(REHEAP_LIFETIME ${REHEAP_SRC}/entry/windows/lifetime.cpp)
endif()

# The helper thread is kept out of the way of what changes a process's rights (entry/linux/alone.h): of programs that
# call such a function, where only the core is linked. Calls by number may change the heap's pages too.
set(REHEAP_ALONE_SOURCES)
if(system STREQUAL "linux")
  foreach(name sandbox privileges credentials initgroups altered)
    list(APPEND REHEAP_ALONE_SOURCES ${REHEAP_SRC}/entry/linux/${name}.cpp)
  endforeach()
endif()

set(REHEAP_CRT_SOURCES)
set(REHEAP_OVERRIDE_SOURCES)
if(WIN32)
  set(REHEAP_CRT_SOURCES ${REHEAP_SRC}/entry/windows/crt.cpp)
  file(GLOB REHEAP_OVERRIDE_SOURCES ${watched}
    ${REHEAP_SRC}/entry/windows/crt_*.cpp ${REHEAP_SRC}/entry/windows/foreign_crt.cpp)
elseif(APPLE)
  foreach(name census foreign_zone zone)
    list(APPEND REHEAP_OVERRIDE_SOURCES ${REHEAP_SRC}/entry/darwin/${name}.cpp)
  endforeach()
else()
  foreach(name malloc tokens foreign_next waits endless_waits pages dlopen)
    list(APPEND REHEAP_OVERRIDE_SOURCES ${REHEAP_SRC}/entry/linux/${name}.cpp)
  endforeach()
endif()
# On Darwin these stay the C++ runtime's, which asks malloc (docs/design/macos.md).
if(NOT APPLE)
  list(APPEND REHEAP_OVERRIDE_SOURCES ${REHEAP_SRC}/entry/new.cpp ${REHEAP_SRC}/entry/new_tokens.cpp
    ${REHEAP_SRC}/entry/replaced.cpp)
endif()

set(REHEAP_RUNTIME ${REHEAP_SRC}/entry/bad_alloc_static.cpp)
if(APPLE)
  set(REHEAP_RUNTIME)
elseif(NOT WIN32)
  list(APPEND REHEAP_RUNTIME ${REHEAP_SRC}/entry/linux/replaced_static.cpp)
endif()
if(CMAKE_CXX_SIMULATE_ID STREQUAL "MSVC" OR MSVC)
  set(REHEAP_RUNTIME ${REHEAP_SRC}/entry/windows/bad_alloc_msvc.cpp)
endif()

file(GLOB REHEAP_FAKE_SOURCES ${watched}
  ${REHEAP_SRC}/platform/fake/*.cpp ${REHEAP_SRC}/platform/fake/${system}/*.cpp)
list(APPEND REHEAP_FAKE_SOURCES ${REHEAP_SRC}/platform/${system}/thread_slot.cpp
  ${REHEAP_SRC}/platform/linux/cgroup.cpp) # files in a certain form, whoever reads them
if(NOT WIN32)
  list(APPEND REHEAP_FAKE_SOURCES ${REHEAP_LIFETIME} ${REHEAP_COPIES})
endif()
