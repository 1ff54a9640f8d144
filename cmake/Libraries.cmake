# The libraries, made of the files that Sources.cmake names.
#
#   reheap_core_objects      everything but the override       -> libreheap-core.a
#   reheap_override_objects  malloc, operator new, start       -> with the core: libreheap.so, libreheap.a
#   reheap_core_fake         the core over the fake platform   (tests only)
#   reheap_hardened_…_objects  all of it again, and hardened/  -> libreheap-hardened.so, libreheap-hardened.a
#
# On macOS they are libreheap.dylib, of a zone in the place of malloc's names, and libreheap.a. On Windows there is no
# libreheap.so; redirect/ makes reheap.dll of
#
#   reheap_crt_objects       the rules of the C runtimes' functions
#
# and reheap-hardened.dll of reheap_hardened_crt_objects.

include(cmake/Sources.cmake)

add_library(reheap_core_objects OBJECT
  ${REHEAP_PORTABLE_SOURCES} ${REHEAP_PLATFORM_SOURCES})
if(WIN32)
  if(NOT CMAKE_UNITY_BUILD) # the portable files are: on Linux they are compiled one by one, which takes less time
    set_target_properties(reheap_core_objects PROPERTIES UNITY_BUILD ON)
    get_target_property(sources reheap_core_objects SOURCES)
    list(FILTER sources INCLUDE REGEX "/windows/[a-z_]+\\.cpp$")
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  # Files compiled as one have the same flags.
  set_source_files_properties(${REHEAP_SELDOM_SOURCES} PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS $<TARGET_PROPERTY:reheap_seldom,INTERFACE_COMPILE_OPTIONS>)
endif()
target_link_libraries(reheap_core_objects PRIVATE reheap_dialect reheap_no_exceptions)

# What a target that uses one of the libraries needs.
function(reheap_public target output)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${output}
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endfunction()

add_library(reheap_core STATIC
  $<TARGET_OBJECTS:reheap_core_objects> ${REHEAP_FOREIGN_SYSTEM} ${REHEAP_LIFETIME} ${REHEAP_ALONE_SOURCES})
reheap_public(reheap_core reheap-core)
target_link_libraries(reheap_core PRIVATE $<BUILD_INTERFACE:reheap_dialect> $<BUILD_INTERFACE:reheap_no_exceptions>)
target_link_libraries(reheap_core PUBLIC ${REHEAP_SYSTEM_LIBRARIES})
# Each file a part by itself, of which a program takes what it names.
set_target_properties(reheap_core PROPERTIES EXPORT_NAME core LINKER_LANGUAGE CXX UNITY_BUILD OFF)
add_library(reheap::core ALIAS reheap_core)

if(REHEAP_TESTS AND REHEAP_FAKE_SOURCES)
  add_library(reheap_core_fake STATIC EXCLUDE_FROM_ALL
    ${REHEAP_PORTABLE_SOURCES} ${REHEAP_FOREIGN_SYSTEM} ${REHEAP_FAKE_SOURCES})
  if(CMAKE_CROSSCOMPILING AND REHEAP_ZIG)
    set(fake_space RH_FAKE_SPACE_GIB=4)
  endif()
  target_compile_definitions(reheap_core_fake PRIVATE ${fake_space} PUBLIC RH_FAKE_PLATFORM)
  target_link_libraries(reheap_core_fake PRIVATE reheap_dialect reheap_no_exceptions
                                         PUBLIC ${REHEAP_SYSTEM_LIBRARIES})
  target_include_directories(reheap_core_fake PUBLIC ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(reheap_core_fake PROPERTIES UNITY_BUILD ON)  # a fifth of the time
  add_library(reheap_hardened_fake STATIC EXCLUDE_FROM_ALL
    ${REHEAP_PORTABLE_SOURCES} ${REHEAP_HARDENED_SOURCES} ${REHEAP_FOREIGN_SYSTEM} ${REHEAP_FAKE_SOURCES})
  target_compile_definitions(reheap_hardened_fake PRIVATE ${fake_space} PUBLIC RH_FAKE_PLATFORM RH_HARDENED)
  target_link_libraries(reheap_hardened_fake PRIVATE reheap_dialect reheap_no_exceptions
                                             PUBLIC ${REHEAP_SYSTEM_LIBRARIES})
  target_include_directories(reheap_hardened_fake PUBLIC ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(reheap_hardened_fake PROPERTIES UNITY_BUILD ON)
endif()

if(REHEAP_SANITIZE)
  # As reheap_core, beside the system's malloc.
  add_library(reheap_hardened_sanitized STATIC EXCLUDE_FROM_ALL
    ${REHEAP_PORTABLE_SOURCES} ${REHEAP_PLATFORM_SOURCES} ${REHEAP_HARDENED_SOURCES}
    ${REHEAP_FOREIGN_SYSTEM} ${REHEAP_LIFETIME} ${REHEAP_ALONE_SOURCES})
  target_compile_definitions(reheap_hardened_sanitized PRIVATE RH_HARDENED)
  target_link_libraries(reheap_hardened_sanitized PRIVATE reheap_dialect reheap_no_exceptions
                                                  PUBLIC ${REHEAP_SYSTEM_LIBRARIES})
  target_include_directories(reheap_hardened_sanitized PUBLIC ${PROJECT_SOURCE_DIR}/include)
  set_target_properties(reheap_hardened_sanitized PROPERTIES LINKER_LANGUAGE CXX UNITY_BUILD ON)
  return()
endif()

if(WIN32)
  add_library(reheap_crt_objects OBJECT ${REHEAP_CRT_SOURCES})
  target_link_libraries(reheap_crt_objects PRIVATE reheap_dialect reheap_no_exceptions)
  set(crt_objects $<TARGET_OBJECTS:reheap_crt_objects>)
endif()
add_library(reheap_override_objects OBJECT ${REHEAP_ALONE_SOURCES} ${REHEAP_OVERRIDE_SOURCES} ${REHEAP_LIFETIME})
target_link_libraries(reheap_override_objects PRIVATE reheap_dialect reheap_no_exceptions)
set_target_properties(reheap_override_objects PROPERTIES UNITY_BUILD OFF)  # as with reheap_core

if(APPLE)
  # A library to insert (DYLD_INSERT_LIBRARIES) or to link. Its name is looked for along the paths that programs say.
  add_library(reheap SHARED
    $<TARGET_OBJECTS:reheap_core_objects> $<TARGET_OBJECTS:reheap_override_objects>
    ${REHEAP_SRC}/entry/darwin/interpose.cpp)
  reheap_public(reheap reheap)
  target_link_libraries(reheap PRIVATE $<BUILD_INTERFACE:reheap_dialect> $<BUILD_INTERFACE:reheap_no_exceptions>)
  # Linked by the C driver: no C++ library is needed, and the linker says so where one is.
  set(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES "")
  set(CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG "-Wl,-rpath,") # which CMake knows on macOS itself alone
  set_target_properties(reheap PROPERTIES
    LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${REHEAP_SOVERSION}
    INSTALL_NAME_DIR @rpath BUILD_WITH_INSTALL_NAME_DIR ON)
  target_link_options(reheap PRIVATE -Wl,-S) # no notes where object files lay
  add_library(reheap::reheap ALIAS reheap)
elseif(NOT WIN32)
  # Beside a file that is built with exceptions.
  set_source_files_properties(${REHEAP_SRC}/entry/linux/dlmopen.cpp PROPERTIES COMPILE_OPTIONS -fno-exceptions)
  set_source_files_properties(${REHEAP_SRC}/entry/linux/dlsym_shared.cpp PROPERTIES COMPILE_OPTIONS -fno-exceptions)
  set_source_files_properties(${REHEAP_SRC}/entry/linux/atfork_shared.cpp PROPERTIES COMPILE_OPTIONS -fno-exceptions)
  # Where the linker can: what few programs run lies apart, and what all of them touch in one piece. Calls of the
  # library's own functions do not leave it, and it exports nothing that it takes from an archive. Zig's linker binds
  # variables too, of which none are exported, and what Zig links is hidden.
  set(bound -Wl,-Bsymbolic-functions -Wl,--exclude-libs,ALL)
  set(REHEAP_LAYOUT ${PROJECT_BINARY_DIR}/layout.ld)
  set(layout -Wl,-T,${REHEAP_LAYOUT})
  set(REHEAP_LAYOUT_PLACE .rodata)
  if(REHEAP_ZIG)
    # Its table for unwinding is searched as if all code came behind it. What the script does not name joins the segment
    # before it.
    set(REHEAP_LAYOUT_PLACE .plt)
  endif()
  configure_file(${REHEAP_SRC}/entry/linux/layout.ld.in ${REHEAP_LAYOUT} @ONLY)
  if(REHEAP_ZIG)
    set(bound -Wl,-Bsymbolic)
    set(REHEAP_LINKER_TAKES_LAYOUT ON)
  else()
    include(CheckLinkerFlag)
    list(PREPEND layout -Wl,-z,noseparate-code) # which Zig's does not know
    list(JOIN layout " " joined)
    check_linker_flag(C "${joined}" REHEAP_LINKER_TAKES_LAYOUT)
  endif()
  # Linked by the C driver, and CMake may not add the C++ library on its own: -z defs then proves that it is not needed.
  set(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES "")

  # reheap_shared(TARGET OUTPUT OBJECTS…): a library to preload or to link.
  function(reheap_shared target output)
    add_library(${target} SHARED
      ${ARGN} ${REHEAP_SRC}/entry/linux/atfork_shared.cpp ${REHEAP_SRC}/entry/linux/bad_alloc_shared.cpp
      ${REHEAP_SRC}/entry/linux/dlmopen.cpp ${REHEAP_SRC}/entry/linux/dlsym_shared.cpp
      ${REHEAP_SRC}/entry/linux/replaced_shared.cpp)
    reheap_public(${target} ${output})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:reheap_dialect> ${REHEAP_SYSTEM_LIBRARIES})
    set_target_properties(${target} PROPERTIES
      LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${REHEAP_SOVERSION})
    target_link_options(${target} PRIVATE
      ${REHEAP_APART} -Wl,-z,defs -Wl,-z,now -Wl,-z,relro
      -Wl,-z,nodelete # blocks outlive a dlclose
      ${bound} -Wl,--as-needed)
    if(REHEAP_LINKER_TAKES_LAYOUT)
      target_link_options(${target} PRIVATE ${layout})
      set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${REHEAP_LAYOUT})
    endif()
    # A program that leaves malloc to its libraries names no symbol of ours: link us all the same. In one word, which
    # CMake leaves whole and at its place, unquoted: the parent's other libraries are linked as the parent says.
    target_link_libraries(${target} INTERFACE
      "-Wl,--push-state,--no-as-needed,\"$<TARGET_FILE:$<TARGET_NAME:${target}>>\",--pop-state")
  endfunction()

  reheap_shared(reheap reheap $<TARGET_OBJECTS:reheap_core_objects> $<TARGET_OBJECTS:reheap_override_objects>)
  add_library(reheap::reheap ALIAS reheap)
endif()

add_library(reheap_static STATIC
  $<TARGET_OBJECTS:reheap_core_objects> $<TARGET_OBJECTS:reheap_override_objects> ${crt_objects} ${REHEAP_RUNTIME})
reheap_public(reheap_static reheap)
target_link_libraries(reheap_static PRIVATE $<BUILD_INTERFACE:reheap_dialect>
                                    PUBLIC ${REHEAP_SYSTEM_LIBRARIES})
# The same reason: pulls the archive's malloc in. Not by --undefined, which Zig does not know.
set(REHEAP_ASK_FOR_MALLOC -Wl,-u,malloc)
if(CMAKE_CXX_SIMULATE_ID STREQUAL "MSVC" OR MSVC)
  set(REHEAP_ASK_FOR_MALLOC LINKER:/include:malloc)
elseif(WIN32 AND CMAKE_SIZEOF_VOID_P EQUAL 4)
  set(REHEAP_ASK_FOR_MALLOC -Wl,-u,_malloc)
elseif(APPLE)
  set(REHEAP_ASK_FOR_MALLOC -Wl,-u,_rh_malloc) # malloc stays the system's, which asks our zone
endif()
target_link_options(reheap_static INTERFACE ${REHEAP_ASK_FOR_MALLOC})
set_target_properties(reheap_static PROPERTIES EXPORT_NAME static)
add_library(reheap::static ALIAS reheap_static)

# The same source with another policy (docs/design/hardened.md).
if(REHEAP_HARDENED AND APPLE)
  message(FATAL_ERROR "REHEAP_HARDENED=ON: there is no hardened library for macOS; say -DREHEAP_HARDENED=OFF")
elseif(REHEAP_HARDENED)
  add_library(reheap_hardened_core_objects OBJECT
    ${REHEAP_PORTABLE_SOURCES} ${REHEAP_PLATFORM_SOURCES} ${REHEAP_HARDENED_SOURCES})
  if(WIN32)
    add_library(reheap_hardened_crt_objects OBJECT ${REHEAP_CRT_SOURCES})
    set(hardened_parts core crt override)
  else()
    set(hardened_parts core override)
  endif()
  add_library(reheap_hardened_override_objects OBJECT
    ${REHEAP_ALONE_SOURCES} ${REHEAP_OVERRIDE_SOURCES} ${REHEAP_LIFETIME})
  set_target_properties(reheap_hardened_core_objects PROPERTIES UNITY_BUILD ON)
  set_target_properties(reheap_hardened_override_objects PROPERTIES UNITY_BUILD OFF)
  foreach(part IN LISTS hardened_parts)
    target_link_libraries(reheap_hardened_${part}_objects PRIVATE reheap_dialect reheap_no_exceptions)
    target_compile_definitions(reheap_hardened_${part}_objects PRIVATE RH_HARDENED)
    list(APPEND hardened_objects $<TARGET_OBJECTS:reheap_hardened_${part}_objects>)
  endforeach()
  if(NOT WIN32)
    reheap_shared(reheap_hardened reheap-hardened ${hardened_objects})
    target_compile_definitions(reheap_hardened PRIVATE RH_HARDENED)
    set_target_properties(reheap_hardened PROPERTIES EXPORT_NAME hardened)
    add_library(reheap::hardened ALIAS reheap_hardened)
  endif()
  add_library(reheap_static_hardened STATIC ${hardened_objects} ${REHEAP_RUNTIME})
  reheap_public(reheap_static_hardened reheap-hardened)
  target_link_libraries(reheap_static_hardened PRIVATE $<BUILD_INTERFACE:reheap_dialect>
                                               PUBLIC ${REHEAP_SYSTEM_LIBRARIES})
  target_link_options(reheap_static_hardened INTERFACE ${REHEAP_ASK_FOR_MALLOC})
  set_target_properties(reheap_static_hardened PROPERTIES EXPORT_NAME hardened_static)
  add_library(reheap::hardened_static ALIAS reheap_static_hardened)
endif()
