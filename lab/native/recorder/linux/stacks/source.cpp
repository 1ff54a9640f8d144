// What is known, rules and stacks, is found without a lock and without a call of the system. What is new is learned
// under one lock, with signals blocked.

#include "linux/stacks/source.h"

#include <string_view>

#include "linux/stacks/sampler.h"
#include "linux/stacks/tree.h"
#include "platform/linux/stacks/code.h"
#include "stream/system.h"

namespace recorder {
namespace {

using namespace rh::stacks;

// In memory that a fork wipes, for the child's trace knows nothing of all this.
struct Known {
  std::atomic<bool> locked;
  std::atomic<uint32_t> unloads;  // that were heeded
  Code code;
  Tree tree;
};

constinit Known* g_known = nullptr;
constinit std::atomic<uint32_t> g_unloads = 0;

class Locked {
 public:
  Locked() {
    while (g_known->locked.exchange(true, std::memory_order_acquire)) system::yield();
  }
  ~Locked() { g_known->locked.store(false, std::memory_order_release); }

 private:
  system::Quiet quiet_;  // taken first and given back last
};

// ---- modules, in the trace --------------------------------------------------------------------

std::string_view view(Piece piece) { return {piece.text, piece.length}; }

bool write_module(void* stream, uint32_t number, const Mapping& mapping, Piece build_id) {
  const trace::ModuleDescription description = {mapping.start, mapping.end - mapping.start, mapping.offset,
                                                view(build_id), view(mapping.path)};
  return write_note(*static_cast<Stream*>(stream),
                    {.kind = trace::Kind::kModule, .module = number, .description = &description},
                    description.build_id.size() + description.path.size());
}

NoteModule note_in(Stream& stream) { return {write_module, &stream}; }

Rule find_rule(Stream& stream, uintptr_t pc, bool trusted) {
  Rule rule;
  if (g_known->code.find(pc, rule)) return rule;
  Locked locked;
  return g_known->code.learn(pc, trusted, note_in(stream));
}

constinit thread_local ThreadStack t_stack{};

StackRange stack_range(uintptr_t sp) {
  StackRange range;
  if (t_stack.find(sp, range)) return range;
  Locked locked;
  return t_stack.learn(sp, g_known->code.modules());
}

// ---- what was chosen --------------------------------------------------------------------------

struct Chosen {
  uintptr_t block;
  uint32_t stack;
};
constinit thread_local Chosen t_chosen{};

uint32_t take(const trace::Event& event) {
  Chosen& chosen = t_chosen;
  if (chosen.block == 0 || chosen.block != event.address || !trace::allocates(event.kind)) return 0;
  chosen.block = 0;
  return chosen.stack;
}

void heed_unloads(Stream& stream) {
  const uint32_t unloads = g_unloads.load(std::memory_order_acquire);
  if (g_known->unloads.load(std::memory_order_relaxed) == unloads) return;
  Locked locked;
  g_known->code.refresh(note_in(stream));
  g_known->unloads = unloads;
}

[[gnu::noinline]] uint32_t current_stack(Stream& stream) {
  heed_unloads(stream);
  Registers here;
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=&r"(here.pc), "=&r"(here.sp), "=&r"(here.fp));
  constexpr uint32_t kMostFrames = 256;
  Frame frames[kMostFrames];
  auto find = [&](uintptr_t place, bool trusted) { return find_rule(stream, place, trusted); };
  const uint32_t count = walk(here, stack_range(here.sp), Own::left_out, find, frames, kMostFrames);
  if (const uint32_t known = g_known->tree.find(frames, count)) return known;
  Locked locked;
  return g_known->tree.add(frames, count, g_known->code.modules(), stream);
}

}  // namespace

StackSource begin_stacks(uint32_t every_bytes) {
  if (!g_known) g_known = static_cast<Known*>(system::memory_of_this_process(sizeof(Known)));
  if (!g_known) return {};
  set_sampling(every_bytes);
  return {take, every_bytes};
}

// In a handler within an event nothing may be written.
void note_stack(const void* block) {
  Stream* stream = stream_for_notes();
  const uint32_t stack = stream && g_known ? current_stack(*stream) : trace::kEmptyStack;
  t_chosen = {reinterpret_cast<uintptr_t>(block), stack};
  if (stream && stream->room) hold_up(*stream);
}

void note_unload() { g_unloads.fetch_add(1, std::memory_order_release); }

}  // namespace recorder
