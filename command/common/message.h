// What the command tells its user, and how it ends when it cannot do what it was asked.
#pragma once

#include "refusal.h"

#include <stdexcept>
#include <string>
#include <string_view>

namespace rh::command {

// Ends the command: one line on stderr, and the status.
struct Failure : std::runtime_error {
  Failure(int exit_status, const std::string& message) : std::runtime_error(message), status(exit_status) {}
  int status;
};

inline std::string to_string(Str text) { return {text.data, text.size}; }

inline void check(const Refusal& refusal) {
  if (refusal) throw Failure(refusal.status, to_string(refusal.message));
}

// One line on stderr, "reheap: " before it, in one write so that it stays whole beside others'.
void say(std::string_view line);

}  // namespace rh::command
