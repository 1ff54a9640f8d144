#include "heap/guards_report.h"

#include "base/bits.h"
#include "base/compiler.h"
#include "base/text.h"

namespace rh::guards {

namespace {

RH_RARE_ZEROS constinit char g_line[8 * 1024];
constinit size_t g_line_length = 0;
constinit std::atomic<bool> g_line_taken{false};

void append_to_line(const char* text, size_t length, void*) {
  for (; length != 0 && g_line_length < sizeof(g_line); --length) g_line[g_line_length++] = *text++;
}

void write_at_once(const char* text, size_t length, void*) { platform::write_error(text, length); }

// A line of any length, written in one piece; but of a thread that has something to say while another has, in several.
// Not on the stack, which may be a signal handler's.
class Line {
 public:
  Line() : in_pieces_(g_line_taken.exchange(true)), text_(in_pieces_ ? write_at_once : append_to_line, nullptr) {
    text_ << "reheap: ";
  }

  ~Line() {
    text_ << '\n';
    text_.flush();
    if (in_pieces_) return;
    platform::write_error(g_line, g_line_length);
    g_line_length = 0;
    g_line_taken.store(false);
  }

  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Text& text() { return text_; }

 private:
  bool in_pieces_;
  Text text_;
};

Text& put_block(Text& text, const Described& block) {
  text << "the block ";
  text.hex(block.start) << " of ";
  return text.decimal(block.size) << " bytes";
}

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

void put_events(Text& text, const Described& block) {
  put_event(text, "made", block.made);
  put_event(text, "freed", block.freed);
}

// Where an address lies, seen from the block.
void put_position(Text& text, const Described& block, uintptr_t address) {
  uintptr_t end = block.start + block.size;
  bool before = address < block.start, behind = address >= end;
  if (!before && !behind) text << "byte ";
  text.decimal(before ? block.start - address : behind ? address - end : address - block.start);
  text << (before ? " bytes before the start of " : behind ? " bytes behind the end of " : " of ");
  put_block(text, block);
}

constexpr const char* kAccesses[] = {"access to ", "read of ", "write to "};

}  // namespace

void note(Event& event) {
  event.thread = platform::thread_id();
  event.depth = platform::stack(event.frames, Event::kMostFrames);
}

void tell_fault(const Described& block, uintptr_t address, platform::Access access) {
  Line line;
  Text& text = line.text();
  bool inside = block.start != 0 && address - block.start < block.size;
  const char* what = inside ? "use after free: " : "invalid access: ";
  if (block.is_live && !inside) what = address < block.start ? "underflow: " : "overflow: ";
  text << what << kAccesses[static_cast<unsigned>(access)];
  text.hex(address);
  if (block.start == 0) {
    text << ", between blocks";
    return;
  }
  put_position(text << ", ", block, address);
  put_events(text, block);
}

void fail_call(const Described& block, const char* function, const void* pointer, bool twice) {
  {
    Line line;
    Text& text = line.text();
    text << function << (twice ? " of what is free already: " : " of invalid pointer ");
    if (twice) {
      put_block(text, block);
    } else {
      text.hex(address_of(pointer)) << ": not the start of a live block";
      if (block.start != 0) put_position(text << ", but ", block, address_of(pointer));
    }
    put_events(text, block);
  }
  platform::abort_process();
}

void fail_written(const Described& block) {
  {
    Line line;
    put_block(line.text(), block) << " was written to behind its end or before its start, seen at free";
    put_events(line.text(), block);
  }
  platform::abort_process();
}

}  // namespace rh::guards
