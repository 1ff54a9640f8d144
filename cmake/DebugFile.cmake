# GCC's debug information lies in the image, as sections: under Wine every process that loads it reads them all. They go
# into TARGET's file with .debug at its end, to which a debugger is pointed.

function(reheap_debug_file target)
  if(NOT (MINGW AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
    return()
  endif()
  set(image $<TARGET_FILE:${target}>)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_OBJCOPY} --only-keep-debug ${image} ${image}.debug
    COMMAND ${CMAKE_OBJCOPY} --strip-debug --add-gnu-debuglink=${image}.debug ${image}
    VERBATIM)
endfunction()
