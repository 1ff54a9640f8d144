#include "replaced.h"

#include "redirect_report.h"

namespace rh::redirect {

namespace {

// Makes a string of each line. What does not fit is cut off.
class Lines {
 public:
  explicit Lines(Json& json) : json_(json) {}

  static void write(const char* text, size_t length, void* lines) {
    for (size_t i = 0; i < length; ++i) static_cast<Lines*>(lines)->add(text[i]);
  }

 private:
  void add(char character) {
    if (character == '\n') {
      line_[length_] = 0;
      json_.string(nullptr, line_);
      length_ = 0;
    } else if (length_ + 1 < sizeof(line_)) {
      line_[length_++] = character;
    }
  }

  Json& json_;
  char line_[1024];
  size_t length_ = 0;
};

}  // namespace

void describe_replaced(Json& json) {
  Lines lines(json);
  json.open("replaced", '[');
  rh_redirect_report(Lines::write, &lines);
  json.close(']');
}

}  // namespace rh::redirect
