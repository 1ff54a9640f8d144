// How the names are defined by which programs compiled with allocation tokens allocate: one that takes the token last,
// and for each of the first few tokens one that has it in its name.
#pragma once

#include "entry/tokens.h"

#if defined(__ELF__)
#define RH_TOKEN_EXPORT extern "C" [[gnu::visibility("default")]]
#else
#define RH_TOKEN_EXPORT extern "C"  // by the linker, if at all
#endif

#define RH_TOKEN_TEXT_(name) #name
#define RH_TOKEN_TEXT(name) RH_TOKEN_TEXT_(name)
#define RH_TOKEN_LABEL RH_TOKEN_TEXT(__USER_LABEL_PREFIX__) "__alloc_token_"
#define RH_TOKEN_LIST(...) __VA_ARGS__

#define RH_TOKEN_NAMED(token, type, function, name, arguments, ...)                                 \
  RH_TOKEN_EXPORT type token_##token##_##function(__VA_ARGS__) asm(RH_TOKEN_LABEL #token "_" name); \
  type token_##token##_##function(__VA_ARGS__) {                                                    \
    return function(rh::tokens::partition_of(token), RH_TOKEN_LIST arguments);                      \
  }

// RH_TOKEN(return type, function, "name", (arguments), parameters…): the function takes a partition first.
#define RH_TOKEN(type, function, name, arguments, ...)                                            \
  RH_TOKEN_EXPORT type token_##function(__VA_ARGS__, std::size_t token) asm(RH_TOKEN_LABEL name); \
  type token_##function(__VA_ARGS__, [[maybe_unused]] std::size_t token) {                        \
    return function(rh::tokens::partition_of(token), RH_TOKEN_LIST arguments);                    \
  }                                                                                               \
  RH_TOKEN_NAMED(0, type, function, name, arguments, __VA_ARGS__)                                 \
  RH_TOKEN_NAMED(1, type, function, name, arguments, __VA_ARGS__)                                 \
  RH_TOKEN_NAMED(2, type, function, name, arguments, __VA_ARGS__)                                 \
  RH_TOKEN_NAMED(3, type, function, name, arguments, __VA_ARGS__)                                 \
  RH_TOKEN_NAMED(4, type, function, name, arguments, __VA_ARGS__)                                 \
  RH_TOKEN_NAMED(5, type, function, name, arguments, __VA_ARGS__)                                 \
  RH_TOKEN_NAMED(6, type, function, name, arguments, __VA_ARGS__)                                 \
  RH_TOKEN_NAMED(7, type, function, name, arguments, __VA_ARGS__)
