# `cmake --install`: libraries, headers, the command, and what finds them again: the CMake package
# (find_package(reheap)) and pkg-config files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(REHEAP_SANITIZE)
  return()
endif()

set(REHEAP_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/reheap)

set(libraries reheap_static reheap_core)
if(TARGET reheap)
  list(PREPEND libraries reheap)
endif()
foreach(library reheap_hardened reheap_static_hardened)
  if(TARGET ${library})
    list(APPEND libraries ${library})
  endif()
endforeach()
if(TARGET products)
  add_dependencies(products ${libraries})
endif()
install(TARGETS ${libraries} EXPORT reheapTargets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/reheap DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET reheap_command)
  install(TARGETS reheap_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

install(EXPORT reheapTargets NAMESPACE reheap:: DESTINATION ${REHEAP_CMAKE_DIR})
configure_package_config_file(integrations/cmake/reheapConfig.cmake.in ${PROJECT_BINARY_DIR}/reheapConfig.cmake
                              INSTALL_DESTINATION ${REHEAP_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/reheapConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/reheapConfig.cmake ${PROJECT_BINARY_DIR}/reheapConfigVersion.cmake
        DESTINATION ${REHEAP_CMAKE_DIR})

# For who links as GCC does.
if(CMAKE_CXX_SIMULATE_ID STREQUAL "MSVC" OR MSVC)
  return()
endif()
set(names reheap-static reheap-core)
set(REHEAP_PC_SYSTEM -lntdll)
set(REHEAP_PC_ARCHIVE "-L\${libdir} -l:libreheap.a") # of a word's spaces pkg-config quotes those behind -L alone
if(NOT WIN32)
  list(APPEND names reheap)
  set(REHEAP_PC_SYSTEM "-pthread -ldl")
  set(REHEAP_PC_LIBRARY "-Wl,--push-state,--no-as-needed -lreheap -Wl,--pop-state")
  if(APPLE)
    set(REHEAP_PC_LIBRARY "-lreheap -Wl,-rpath,\${libdir}")
    set(REHEAP_PC_ARCHIVE "\${libdir}/libreheap.a") # its linker knows no -l:
  endif()
endif()
# Relative to where the .pc file lies, so that an installed tree can be moved.
string(REGEX REPLACE "[^/]+" ".." REHEAP_PC_PREFIX ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET reheap_hardened)
  list(APPEND names reheap-hardened)
endif()
foreach(name IN LISTS names)
  configure_file(integrations/pkgconfig/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
