#include "runner/system.h"

namespace runner {

const char kSystemName[] = "linux";
const char kWritingMode[] = "wbe";

}  // namespace runner
