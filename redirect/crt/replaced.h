// The account of what was replaced, for the library's account of itself.
#pragma once

#include "base/text.h"

namespace rh::redirect {

// An array of the lines of rh_redirect_report.
void describe_replaced(Json& json);

}  // namespace rh::redirect
