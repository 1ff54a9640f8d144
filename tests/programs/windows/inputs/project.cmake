# A project of commands alone: each part is made from the one before by cmake itself.
cmake_minimum_required(VERSION 3.25)
project(parts LANGUAGES NONE)

file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/part0 "the first part\n")
foreach(number RANGE 1 6)
  math(EXPR before "(${number} - 1) / 2")
  configure_file(part.in part${number}.in @ONLY)
  add_custom_command(OUTPUT part${number} DEPENDS part${before} part${number}.in
    COMMAND ${CMAKE_COMMAND} -E cat part${before} part${number}.in > part${number} VERBATIM)
  list(APPEND parts part${number})
endforeach()
add_custom_target(parts ALL DEPENDS ${parts})
