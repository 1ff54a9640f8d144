#include "observed.h"

void tell_effects(Line& line, DWORD error, const Raised& raised) {
  if (raised.code != 0) {
    line.say(" exception=%08lx%s", raised.code, raised.continuable ? " continuable" : "");
  } else if (error != kUntouched) {
    line.say(" error=%lu", error);
  }
}

// Nothing is gathered: the effects of each call are told at once.
void forget_side_effects() {}
void tell_side_effects(Line&) {}
