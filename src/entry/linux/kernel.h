// For functions of the C library's that hand their arguments to the kernel as they are.
#pragma once

#include <errno.h>

#include <type_traits>

#include "entry/linux/alone.h"
#include "platform/linux/syscall.h"

namespace rh {

// As the C library tells it.
inline long with_errno(long result) {
  if (!platform::is_error(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// An argument as the kernel takes it.
template <typename Argument> long as_word(Argument argument) {
  if constexpr (std::is_pointer_v<Argument>)
    return reinterpret_cast<long>(argument);
  else
    return static_cast<long>(argument);
}

// The next function, or the kernel where that is not to be found.
template <typename Function, typename... Arguments>
auto next_or_kernel(NextFunction<Function>& next, long number, Arguments... arguments) {
  Function* function = next.get();
  if (function != nullptr) return function(arguments...);
  using Result = decltype(function(arguments...));
  long result = with_errno(platform::system_call(number, as_word(arguments)...));
  if constexpr (std::is_pointer_v<Result>)
    return reinterpret_cast<Result>(result);
  else
    return static_cast<Result>(result);
}

}  // namespace rh
