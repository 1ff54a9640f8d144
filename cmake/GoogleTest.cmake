# GoogleTest is built from its source, so that it fits every preset: 32-bit, sanitizers, either compiler.
# Debian's package `googletest` brings the source; elsewhere an installed GTest package serves.

include(GoogleTest)
set(REHEAP_GOOGLETEST_SOURCE /usr/src/googletest/googletest)
if(EXISTS ${REHEAP_GOOGLETEST_SOURCE}/src/gtest-all.cc)
  # Not by its own CMakeLists.txt, which starts Python to look for it.
  add_library(gtest STATIC EXCLUDE_FROM_ALL ${REHEAP_GOOGLETEST_SOURCE}/src/gtest-all.cc)
  target_include_directories(gtest PRIVATE ${REHEAP_GOOGLETEST_SOURCE})
  target_include_directories(gtest SYSTEM PUBLIC ${REHEAP_GOOGLETEST_SOURCE}/include)
  target_link_libraries(gtest PUBLIC ${REHEAP_SYSTEM_LIBRARIES})
  add_library(gtest_main STATIC EXCLUDE_FROM_ALL ${REHEAP_GOOGLETEST_SOURCE}/src/gtest_main.cc)
  target_link_libraries(gtest_main PUBLIC gtest)
  foreach(library gtest gtest_main)
    # Its warnings are not ours to fix, nor is its speed. (To MinGW's linker each of a file's sections costs time for
    # each of the others: at -O0 three thousand, two seconds.)
    set_target_properties(${library} PROPERTIES COMPILE_WARNING_AS_ERROR OFF)
    target_compile_options(${library} PRIVATE -w -g0 $<IF:$<AND:$<PLATFORM_ID:Windows>,$<CXX_COMPILER_ID:GNU>>,-O1,-O0>)
    add_library(GTest::${library} ALIAS ${library})
  endforeach()
  # Each test is a process of its own, and under Wine a third of its time goes into reading symbols with the image.
  if(WIN32 AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_link_options(gtest INTERFACE -s)
  endif()
else()
  find_package(GTest REQUIRED)
endif()
