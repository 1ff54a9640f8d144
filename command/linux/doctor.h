// `reheap doctor`: proves that the library serves malloc, or says why it does not.
#pragma once

#include "common/settings.h"

namespace rh::command {

struct DoctorOptions {
  Settings settings;
  bool json = false;
};

// `arguments`: the program's argv ended by nullptr, or nullptr to examine the installation.
// Gives the exit status: exit_reached or exit_not_reached.
int doctor(const DoctorOptions& options, char* const* arguments);

}  // namespace rh::command
