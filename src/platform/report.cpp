#include "platform/report.h"

#include "base/check.h"
#include "base/compiler.h"
#include "platform/path.h"

namespace rh {

namespace {

void write_at_once(const char* text, size_t length, void*) { platform::write_error(text, length); }

RH_RARE_ZEROS constinit char g_line[8 * 1024];
constinit size_t g_line_length = 0;
constinit std::atomic<bool> g_line_taken{false};
constinit std::atomic<const char*> g_misuse_file{nullptr};

void append_to_line(const char* text, size_t length, void*) {
  for (; length != 0 && g_line_length < sizeof(g_line); --length) g_line[g_line_length++] = *text++;
}

void put(Text& text, const Text& message) {
  for (size_t at = 0; at < message.length(); ++at) text << message.data()[at];
}

// ---- the line -----------------------------------------------------------------------------------

void put_frame(Text& text, uintptr_t frame) {
  platform::CodePlace place;
  if (platform::find_code(frame, &place))
    (text << place.file << '+').hex(place.offset);
  else
    text.hex(frame);
}

void put_event(Text& text, const char* what, const Event* event) {
  if (event == nullptr || event->thread == 0) return;
  text << "; " << what << " by thread ";
  text.decimal(event->thread);
  if (event->depth == 0) return;
  text << " at";
  for (unsigned frame = 0; frame < event->depth; ++frame) put_frame(text << ' ', event->frames[frame]);
}

// ---- the object ---------------------------------------------------------------------------------

void describe(Json& json, const char* key, const Event* event) {
  if (event == nullptr || event->thread == 0) return;
  json.open(key, '{');
  json.number("thread", event->thread);
  json.open("stack", '[');
  for (unsigned frame = 0; frame < event->depth; ++frame) {
    platform::CodePlace place;
    json.open(nullptr, '{');
    json.address("address", event->frames[frame]);
    if (platform::find_code(event->frames[frame], &place)) {
      json.string("file", place.file);
      json.address("offset", place.offset);
    }
    json.close('}');
  }
  json.close(']');
  json.close('}');
}

void write_object(const char* path, const Text& message, const Misuse& misuse) {
  Text expanded;
  expand(path, expanded);
  platform::FileWriter file(expanded.data(), platform::FileWriter::How::append);
  if (!file.is_open()) {
    Text refused;
    return report(refused << "REHEAP_MISUSE_JSON " << path << ": cannot be written");
  }
  Event now;
  note(now);
  Text whole;  // with an end
  put(whole, message);
  whole << '\0';
  auto append = [](const char* text, size_t length, void* to) {
    static_cast<platform::FileWriter*>(to)->write(text, length);
  };
  Text text(append, &file);
  Json json(text);
  json.open(nullptr, '{');
  json.string("message", whole.data());
  json.number("pid", platform::process_id());
  if (misuse.block != 0) {
    json.open("block", '{');
    json.address("address", misuse.block);
    json.number("size", misuse.size);
    json.close('}');
  }
  describe(json, "made", misuse.made);
  describe(json, "freed", misuse.freed);
  describe(json, "seen", &now);
  json.close('}');
  text << '\n';
}

}  // namespace

void report(const Text& message) {
  Text line(write_at_once, nullptr);
  line << "reheap: ";
  put(line, message);
  line << '\n';
}

Line::Line() : whole_(!g_line_taken.exchange(true)), text_(whole_ ? append_to_line : write_at_once, nullptr) {
  text_ << "reheap: ";
}

Line::~Line() {
  text_ << '\n';
  text_.flush();
  if (!whole_) return;
  platform::write_error(g_line, g_line_length);
  g_line_length = 0;
  g_line_taken.store(false);
}

void note(Event& event) {
  event.thread = platform::thread_id();
  event.depth = platform::stack(event.frames, Event::kMostFrames);
}

// Of threads that misuse memory at the same time one has the say; of the others what is on the line at least.
void tell_misuse(const Text& message, const Misuse& misuse) {
  Line line;
  put(line.text(), message);
  if (!line.is_whole()) return;
  put_event(line.text(), "made", misuse.made);
  put_event(line.text(), "freed", misuse.freed);
  if (const char* path = g_misuse_file.load(); path != nullptr) write_object(path, message, misuse);
}

void fatal(const Text& message, const Misuse& misuse) {
  tell_misuse(message, misuse);
  platform::abort_process();
}

void set_misuse_file(const char* path) { g_misuse_file.store(path); }

void check_failed(const char* condition, const char* file, int line) {
  Text message;
  message << file << ':';
  message.decimal(static_cast<uint64_t>(line)) << ": internal check failed: " << condition;
  fatal(message);
}

}  // namespace rh
