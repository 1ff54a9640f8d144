#include "runner/system.h"

namespace runner {

const char kSystemName[] = "windows";
const char kWritingMode[] = "wbN";

}  // namespace runner
