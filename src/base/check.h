// Internal invariants. Debug builds stop with the failed condition; release builds assume nothing.
#pragma once

namespace rh {

// Reports and ends the process. Defined in platform/report.cpp: base makes no OS call.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

#if defined(RH_DEBUG_CHECKS)
inline constexpr bool kDebugChecks = true;
#else
inline constexpr bool kDebugChecks = false;
#endif

}  // namespace rh

#if defined(RH_DEBUG_CHECKS)
#define RH_CHECK(condition) (static_cast<bool>(condition) ? void() : ::rh::check_failed(#condition, __FILE__, __LINE__))
#else
#define RH_CHECK(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
