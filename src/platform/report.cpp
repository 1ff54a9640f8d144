#include "platform/report.h"

#include "base/check.h"
#include "platform/platform.h"

namespace rh {

void report(const Text& message) {
  Text line([](const char* text, size_t length, void*) { platform::write_error(text, length); }, nullptr);
  line << "reheap: ";
  for (size_t i = 0; i < message.length(); ++i) line << message.data()[i];
  line << '\n';
}

void fatal(const Text& message) {
  report(message);
  platform::abort_process();
}

void check_failed(const char* condition, const char* file, int line) {
  Text message;
  message << file << ':';
  message.decimal(static_cast<uint64_t>(line)) << ": internal check failed: " << condition;
  fatal(message);
}

}  // namespace rh
