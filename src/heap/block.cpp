#include "heap/block.h"

#include "platform/report.h"

namespace rh {

// The table also has room for addresses that are somebody else's, and not yet for all that were reserved.
bool in_realm(const void* pointer) {
  Span* span = g_realm.find(pointer);
  return (span != nullptr && span->kind.load() != SpanKind::none) || g_realm.covers(pointer);
}

Span* find_within_large(const void* pointer) {
  Span* unit = in_realm(pointer) ? g_realm.find(pointer) : nullptr;
  return unit != nullptr ? large::head_of(unit) : nullptr;
}

void fail_invalid(const char* function, const void* pointer) {
  Text message;
  if (const Span* span = g_realm.find(pointer); span != nullptr && span->kind.load() == SpanKind::guarded)
    guards::fail_invalid(span, function, pointer);
  message << function << " of invalid pointer ";
  message.hex(address_of(pointer)) << ": not the start of a live block";
  fatal(message);
}

}  // namespace rh
