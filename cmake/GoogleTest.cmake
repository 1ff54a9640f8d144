# GoogleTest is built from its source, so that it fits every preset: 32-bit, sanitizers, either compiler.
# Debian's package `googletest` brings the source; elsewhere an installed GTest package serves.

include(GoogleTest)
set(REHEAP_GOOGLETEST_SOURCE /usr/src/googletest)
if(EXISTS ${REHEAP_GOOGLETEST_SOURCE}/CMakeLists.txt)
  set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
  set(BUILD_GMOCK OFF CACHE BOOL "" FORCE)
  add_subdirectory(${REHEAP_GOOGLETEST_SOURCE} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
  foreach(library gtest gtest_main)
    # Its warnings are not ours to fix, nor is its speed. (Zig has checks at -O0 whose library it leaves out, and to
    # MinGW's linker each of a file's sections costs time for each of the others: at -O0 three thousand, two seconds.)
    set_target_properties(${library} PROPERTIES
      COMPILE_WARNING_AS_ERROR OFF ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/googletest)
    target_compile_options(${library} PRIVATE -w -g0 $<IF:$<PLATFORM_ID:Windows>,-O1,-O0>)
    if(NOT TARGET GTest::${library})
      add_library(GTest::${library} ALIAS ${library})
    endif()
  endforeach()
  # Each test is a process of its own, and under Wine a third of its time goes into reading symbols with the image.
  if(WIN32 AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_link_options(gtest INTERFACE -s)
  endif()
else()
  find_package(GTest REQUIRED)
endif()
