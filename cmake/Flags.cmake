# How this project's own code is compiled. Dependencies get none of it.

set(REHEAP_WARNINGS -Wall -Wextra -Wundef -Wshadow)
set(REHEAP_STRICT_WARNINGS -Wconversion -Wsign-conversion -Wold-style-cast -Wcast-qual -Wmissing-declarations)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(REHEAP_WARNINGS -w) # the parent may warn of more, and hold every warning for an error
  set(REHEAP_STRICT_WARNINGS "")
endif()

if(NOT REHEAP_SANITIZE STREQUAL "")
  if(NOT REHEAP_SANITIZE MATCHES "^(thread|undefined)$")
    message(FATAL_ERROR "REHEAP_SANITIZE=${REHEAP_SANITIZE} is not a sanitizer reheap can be built "
                        "under; allowed: thread, undefined, or empty for none")
  endif()
  # For the whole tree, GoogleTest too: a race between instrumented and plain code goes unseen.
  add_compile_options(-fsanitize=${REHEAP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${REHEAP_SANITIZE})
endif()

# GCC's Debug is -O0, where an allocator's tests take minutes; -Og keeps what a debugger needs.
if(NOT MSVC AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")
  set(CMAKE_C_FLAGS_DEBUG "-Og -g")
endif()

# Where _msize and HeapSize are served, the sizes asked for are kept; Debug builds keep them everywhere, so that this is
# tested on every system. What debug builds check (base/check.h) are members too. For the tests of inner layers as well.
add_compile_definitions($<$<CONFIG:Debug>:RH_DEBUG_CHECKS>)
if(WIN32)
  add_compile_definitions(RH_EXACT_SIZES)
else()
  add_compile_definitions($<$<CONFIG:Debug>:RH_EXACT_SIZES>)
endif()

# What a whole project is compiled with but malloc cannot be: instrumented code allocates and calls what is not there
# yet, checks of the C++ library want that library, those of the C library are functions of the names that we define
# (Clang then compiles nothing), wider times and offsets of 32-bit programs go by names that ours do not have, and
# link-time optimisation takes a program's malloc for the one it knows. And what is made does not tell the folder it was
# made in. (Zig instruments by flags of its own.)
set(REHEAP_APART "-ffile-prefix-map=${PROJECT_BINARY_DIR}=build" "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
if(NOT REHEAP_ZIG AND NOT REHEAP_SANITIZE AND NOT REHEAP_COHERENCE) # the simulation sees what is instrumented
  list(APPEND REHEAP_APART -fno-lto -fno-sanitize=all -fno-profile-arcs -fno-test-coverage
    -U_GLIBCXX_ASSERTIONS -U_GLIBCXX_DEBUG -fexceptions
    -Wp,-U_FORTIFY_SOURCE # distributions define it by -Wp too, which comes behind any -U
    -Wp,-U_TIME_BITS -Wp,-U_FILE_OFFSET_BITS)
endif()

# This word alone cannot be taken back by another.
foreach(language C CXX)
  string(REGEX REPLACE "(^| )--coverage( |$)" " " CMAKE_${language}_FLAGS "${CMAKE_${language}_FLAGS}")
endforeach()
foreach(property COMPILE_OPTIONS LINK_OPTIONS)
  get_directory_property(options ${property})
  list(REMOVE_ITEM options --coverage)
  set_directory_properties(PROPERTIES ${property} "${options}")
endforeach()

# The freestanding dialect of src/ (docs/ARCHITECTURE.md).
add_library(reheap_dialect INTERFACE)
target_compile_features(reheap_dialect INTERFACE cxx_std_20)
target_include_directories(reheap_dialect INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(reheap_dialect INTERFACE
  REHEAP_BUILD="$<IF:$<CONFIG:Debug>,debug,release>")
target_compile_options(reheap_dialect INTERFACE
  ${REHEAP_WARNINGS} ${REHEAP_STRICT_WARNINGS}
  ${REHEAP_APART}
  $<$<CONFIG:>:-O2> $<$<CONFIG:Debug>:-Og> # never -O0: what a build leaves out is left out by the optimiser
  -fno-rtti
  -fno-threadsafe-statics # a guard would be a libstdc++ call, and a lock
  -fvisibility=hidden
  -fvisibility-inlines-hidden
  # The compiler may not turn calloc's malloc + memset into a call of calloc.
  -fno-builtin-malloc
  -fno-builtin-calloc
  -fno-builtin-realloc
  -fno-builtin-free
  # Exceptions of a new-handler and stack dumps pass through our frames.
  -fasynchronous-unwind-tables
  $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)

# Return addresses are signed, and jumps lead to where one is expected, where the processor knows of that (64-bit ARM).
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64" AND NOT WIN32)
  target_compile_options(reheap_dialect INTERFACE -mbranch-protection=standard)
endif()

# Nothing here is imported data, and all of it lies within an image: no detour through a pointer to each variable.
if(MINGW AND CMAKE_SIZEOF_VOID_P EQUAL 8 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(reheap_dialect INTERFACE -mcmodel=small)
endif()

# What runs seldom, and is in five DLLs of a package: small rather than fast.
add_library(reheap_seldom INTERFACE)
target_compile_options(reheap_seldom INTERFACE $<$<NOT:$<CONFIG:Debug>>:-Os>)

# For debuggers too, where those for exceptions are not data of Windows' own: the DLL leaves these out.
if(MINGW AND CMAKE_SIZEOF_VOID_P EQUAL 4 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(reheap_dialect INTERFACE -fno-dwarf2-cfi-asm)
endif()

# The one file that throws std::bad_alloc itself is built without this.
add_library(reheap_no_exceptions INTERFACE)
target_compile_options(reheap_no_exceptions INTERFACE -fno-exceptions)
