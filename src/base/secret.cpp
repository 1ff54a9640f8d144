#include "base/secret.h"

namespace rh {

constinit uint64_t g_secrets[static_cast<unsigned>(Secret::count)] = {};

}  // namespace rh
