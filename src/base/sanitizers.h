// Which sanitizer this is built for: GCC defines a macro, Clang answers __has_feature. What is compiled for the
// coherence simulation (bench/coherence) only looks like code for ThreadSanitizer, and runs as a release does.
#pragma once

#if defined(__has_feature) && !defined(RH_COHERENCE)
#if __has_feature(thread_sanitizer)
#define RH_THREAD_SANITIZER 1
#endif
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define RH_SHADOW_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define RH_THREAD_SANITIZER 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RH_SHADOW_SANITIZER 1
#endif
#if !defined(RH_THREAD_SANITIZER)
#define RH_THREAD_SANITIZER 0
#endif
#if !defined(RH_SHADOW_SANITIZER)
#define RH_SHADOW_SANITIZER RH_THREAD_SANITIZER
#endif
