// The calling thread's stack. What is known of code lies in memory that a forked child finds zeroed: the child learns
// anew, whatever another thread was in the middle of. Unloads are not heard of, so the map is looked at again once in a
// while.
#include <sys/mman.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "platform/desk.h"
#include "platform/linux/stacks/code.h"
#include "platform/linux/syscall.h"
#include "platform/linux/thread_pointer.h"
#include "platform/platform.h"

// The linker's: where what this is part of begins and ends.
extern "C" RH_HIDDEN const char __ehdr_start, _end;

namespace rh::platform {

namespace {

struct KnownCode {
  DeskHolder holder[1];  // who learns
  std::atomic<uint64_t> next_look_ms;
  stacks::Code code;
};

constexpr size_t kKnownSize = align_up(sizeof(KnownCode), kPageSize);

// 0 before the first stack; kNone where there is no memory for it, or the kernel does not clear it in children.
constinit std::atomic<uintptr_t> g_known_code{0};
constexpr uintptr_t kNone = 1;

constinit RH_THREAD_LOCAL stacks::ThreadStack t_thread_stack{};

uintptr_t make_known() {
  const uintptr_t at = reserve(kKnownSize, kPageSize);
  if (at == 0) return kNone;
  if (commit(at, kKnownSize) && !is_error(system_call(SYS_madvise, static_cast<long>(at), kKnownSize, MADV_WIPEONFORK)))
    return at;
  release(at, kKnownSize);
  return kNone;
}

KnownCode* known_code() {
  uintptr_t known = g_known_code.load(std::memory_order_acquire);
  if (known == 0) {
    const uintptr_t made = make_known();
    if (g_known_code.compare_exchange_strong(known, made, std::memory_order_acq_rel))
      known = made;
    else if (made != kNone)
      release(made, kKnownSize);
  }
  return known == kNone ? nullptr : reinterpret_cast<KnownCode*>(known);
}

constexpr stacks::NoteModule kTellNobody = {nullptr, nullptr};

RH_NOINLINE stacks::Rule learn_rule(KnownCode& known, uintptr_t pc, bool trusted) {
  AtDesk desk(known.holder);
  return desk ? known.code.learn(pc, trusted, kTellNobody) : stacks::nowhere();
}

stacks::StackRange range_of(KnownCode& known, uintptr_t sp) {
  stacks::StackRange range;
  if (t_thread_stack.find(sp, range)) return range;
  AtDesk desk(known.holder);
  return desk ? t_thread_stack.learn(sp, known.code.modules()) : stacks::StackRange{};
}

// The functions of this library that lead here. Linked into the program, they cannot be told from the rest of it.
stacks::Skipped own_code() {
  const uintptr_t begin = address_of(&__ehdr_start);
  return {begin, begin == image_address() ? 0 : address_of(&_end) - begin};
}

// Costs at most a thousandth of the time, and is not done more often than each second.
void look_again(KnownCode& known) {
  constexpr uint64_t kLeastMs = 1000, kShare = 1000;
  const uint64_t now = now_ms();
  if (now < known.next_look_ms.load(std::memory_order_relaxed)) return;
  AtDesk desk(known.holder);
  if (!desk) return;
  known.code.refresh(kTellNobody);
  const uint64_t end = now_ms();
  known.next_look_ms.store(end + kLeastMs + (end - now) * kShare, std::memory_order_relaxed);
}

}  // namespace

// No memory but the caller's: he may stand on a stack that is a signal's, and small.
unsigned stack(uintptr_t* frames, unsigned most) {
  static_assert(sizeof(stacks::Frame) == sizeof(*frames));
  KnownCode* known = known_code();
  if (known == nullptr) return 0;
  stacks::Registers here;
  asm volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=&r"(here.pc), "=&r"(here.sp), "=&r"(here.fp));
  look_again(*known);
  auto* found = reinterpret_cast<stacks::Frame*>(frames);
  auto find = [known](uintptr_t place, bool trusted) {
    stacks::Rule rule;
    return RH_LIKELY(known->code.find(place, rule)) ? rule : learn_rule(*known, place, trusted);
  };
  const uint32_t count = stacks::walk(here, range_of(*known, here.sp), stacks::Own::kept, find, found,
                                      most < kMostFrames ? most : kMostFrames, own_code());
  for (uint32_t i = 0; i != count; ++i) frames[i] = found[i].address();
  return count;
}

void each_module(void (*visit)(const Module& module, void* context), void* context) {
  constexpr size_t kSize = align_up(stacks::kMapBuffer, kPageSize);
  const uintptr_t buffer = reserve(kSize, kPageSize);
  if (buffer == 0) return;
  if (commit(buffer, kSize)) {
    stacks::MemoryMap map(reinterpret_cast<char*>(buffer), kSize);
    stacks::each_code(map, [=](const stacks::Mapping& mapping, uintptr_t image) {
      char bytes[stacks::kMostBuildId];
      const stacks::Piece id = stacks::build_id_of(image, bytes);
      visit({mapping.start, mapping.end, mapping.offset, mapping.path.text, mapping.path.length,
             reinterpret_cast<const unsigned char*>(id.text), id.length},
            context);
    });
  }
  release(buffer, kSize);
}

}  // namespace rh::platform
