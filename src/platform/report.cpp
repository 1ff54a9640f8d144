#include "platform/report.h"

#include <new>

#include "base/check.h"
#include "base/compiler.h"
#include "platform/desk.h"
#include "platform/path.h"
#include "platform/sinks.h"

namespace rh {

namespace {

constinit std::atomic<const char*> g_misuse_file{nullptr};

void put(Text& text, const Text& message) {
  for (size_t at = 0; at < message.length(); ++at) text << message.data()[at];
}

void put_message(Text& text, const void* message) { put(text, *static_cast<const Text*>(message)); }

// ---- the desk -----------------------------------------------------------------------------------

// What it takes to say something at length, once: who writes may stand on a stack that is a signal's, and small.
struct Desk {
  size_t length;
  char line[8 * 1024];
  Event seen;
  alignas(Text) unsigned char text[sizeof(Text)], path[sizeof(Text)];
};
RH_RARE_ZEROS constinit Desk g_desk = {};
constinit DeskHolder g_holder[1] = {};

constexpr char kBegin[] = "reheap: ";

// One character of the line is kept back for an end.
void append_to_line(const char* text, size_t length, void*) {
  for (; length != 0 && g_desk.length < sizeof(g_desk.line) - 1; --length) g_desk.line[g_desk.length++] = *text++;
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

void describe_misuse_to(platform::FileWriter& file, const char* message, const Misuse& misuse) {
  note(g_desk.seen);
  Text& text = *new (g_desk.text) Text(write_to_file, &file);
  Json json(text);
  json.open(nullptr, '{');
  json.string("message", message);
  json.number("pid", platform::process_id());
  if (misuse.block != 0) {
    json.open("block", '{');
    json.address("address", misuse.block);
    json.number("size", misuse.size);
    json.close('}');
  }
  describe(json, "made", misuse.made);
  describe(json, "freed", misuse.freed);
  describe(json, "seen", &g_desk.seen);
  json.close('}');
  text << '\n';
  text.flush();
}

// What holds it is on the desk; `message` is too.
void write_object(const char* path, const char* message, const Misuse& misuse) {
  Text& expanded = *new (g_desk.path) Text;
  expand(path, expanded);
  platform::FileWriter file(expanded.data(), platform::FileWriter::How::append);
  if (file.is_open()) describe_misuse_to(file, message, misuse);
  if (file.is_whole()) return;
  Text& refused = *new (g_desk.text) Text(write_to_error, nullptr);
  refused << kBegin << "REHEAP_MISUSE_JSON " << path << ": " << file.refusal() << '\n';
  refused.flush();
}

// At the desk; gives where what was said ends.
size_t write_line(Say* say, const void* context, const Misuse* misuse) {
  g_desk.length = 0;
  Text& text = *new (g_desk.text) Text(append_to_line, nullptr);
  say(text << kBegin, context);
  text.flush();
  const size_t said = g_desk.length;
  if (misuse != nullptr) {
    put_event(text, "made", misuse->made);
    put_event(text, "freed", misuse->freed);
  }
  text.flush();
  g_desk.line[g_desk.length++] = '\n';
  platform::write_error(g_desk.line, g_desk.length);
  return said;
}

// Without the desk.
RH_COLD void write_in_pieces(Say* say, const void* context) {
  Text text(write_to_error, nullptr);
  say(text << kBegin, context);
  text << '\n';
}

}  // namespace

void report(const Text& message) { write_in_pieces(put_message, &message); }

void report_line(Say* say, const void* context) {
  AtDesk desk(g_holder);
  if (!desk) return write_in_pieces(say, context);
  write_line(say, context, nullptr);
}

void leave_reports_of_others(platform::ThreadToken own) { leave_desks_of_others(g_holder, own); }

void note(Event& event) {
  event.thread = platform::thread_id();
  event.depth = platform::stack(event.frames, Event::kMostFrames);
}

// The object comes last: it takes more stack, and a file.
void tell_misuse(Say* say, const void* context, const Misuse& misuse) {
  AtDesk desk(g_holder);
  if (!desk) return write_in_pieces(say, context);
  g_desk.line[write_line(say, context, &misuse)] = 0;
  const char* message = g_desk.line + sizeof(kBegin) - 1;
  platform::probe_misuse(message, misuse.block);
  if (const char* path = g_misuse_file.load(); path != nullptr) write_object(path, message, misuse);
}

void tell_misuse(const Text& message, const Misuse& misuse) { tell_misuse(put_message, &message, misuse); }

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
