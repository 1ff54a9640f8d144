# Zydis, another decoder, from the crate that carries its source: what the decoder of x86 is compared with.

set(REHEAP_ZYDIS_VERSION 4.1.1)
set(REHEAP_ZYDIS "" CACHE PATH "Source of the crate zydis ${REHEAP_ZYDIS_VERSION}; empty: fetched by cargo")

if(NOT REHEAP_ZYDIS)
  execute_process(
    COMMAND ${REHEAP_PYTHON} -B -c [[
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import registries
print(registries.fetch_crate("zydis", sys.argv[2], pathlib.Path(sys.argv[3])))
]] ${PROJECT_SOURCE_DIR}/tools ${REHEAP_ZYDIS_VERSION} ${CMAKE_BINARY_DIR}/crates
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(zydis ${folder}/zydis-c)
else()
  set(zydis ${REHEAP_ZYDIS}/zydis-c)
endif()

add_library(zydis STATIC
  ${zydis}/src/Decoder.c ${zydis}/src/DecoderData.c ${zydis}/src/Register.c ${zydis}/src/SharedData.c)
target_include_directories(zydis SYSTEM PUBLIC ${zydis}/include ${zydis}/dependencies/zycore/include)
target_include_directories(zydis PRIVATE ${zydis}/src)
target_compile_definitions(zydis PUBLIC
  ZYDIS_STATIC_BUILD ZYCORE_STATIC_BUILD ZYDIS_DISABLE_AVX512 ZYDIS_DISABLE_KNC ZYDIS_DISABLE_ENCODER
  ZYDIS_DISABLE_FORMATTER ZYDIS_DISABLE_SEGMENT)
target_compile_options(zydis PRIVATE -w)
set_target_properties(zydis PROPERTIES UNITY_BUILD OFF)
