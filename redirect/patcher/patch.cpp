#include "patch.h"

#include <windows.h>

#include "threads.h"
#include "unwind.h"

namespace rh::redirect {

namespace {

constexpr size_t kMostMoved = 96;  // bytes of a trampoline

uintptr_t address_of(const uint8_t* code) { return reinterpret_cast<uintptr_t>(code); }
uint8_t* code_at(uintptr_t address) { return reinterpret_cast<uint8_t*>(address); }

// Whether compilers end a function here: with what traps, which none puts behind a return within one. What branches
// lead to beyond it was moved out of the function's way, among other functions.
bool is_gap(uintptr_t here, uintptr_t end) {
  Instruction instruction;
  return here < end && decode(code_at(here), end - here, &instruction) && instruction.padding &&
         instruction.flow == Flow::leave;
}

// Calls `see(code, instruction)` for every instruction of the function until it says false. NULL, or why the walk
// ended early. The end is a leave or jump that nothing seen so far goes beyond, or that a gap follows.
template <typename See> const char* walk(Range function, See see) {
  uintptr_t furthest = function.begin;
  for (uintptr_t here = function.begin; here < function.end;) {
    Instruction instruction;
    if (!decode(code_at(here), function.end - here, &instruction)) return "has an unknown instruction";
    if (!see(here, instruction)) return nullptr;
    bool goes = instruction.flow == Flow::branch || instruction.flow == Flow::jump;
    if (goes && function.holds(instruction.target) && instruction.target > furthest) furthest = instruction.target;
    here += instruction.length;
    bool ends = instruction.flow == Flow::jump || instruction.flow == Flow::leave;
    if (ends && here > furthest) return nullptr;
    if (ends && !instruction.padding && is_gap(here, function.end)) return nullptr;
  }
  return nullptr;
}

// The bytes from `here` to `end` are never run.
bool is_padding(uintptr_t here, uintptr_t end, Range function) {
  while (here < end) {
    Instruction instruction;
    if (here >= function.end || !decode(code_at(here), function.end - here, &instruction)) return false;
    if (!instruction.padding) return false;
    here += instruction.length;
  }
  return true;
}

// Nothing in the function goes back to where the jump will stand.
const char* check_body(Range function) {
  bool inside = false;
  Range covered = {function.begin, function.begin + kJumpSize};
  const char* problem = walk(function, [&](uintptr_t, const Instruction& instruction) {
    bool goes =
        instruction.flow == Flow::branch || instruction.flow == Flow::jump || instruction.flow == Flow::unmovable;
    inside = inside || (goes && covered.holds(instruction.target));
    return !inside;
  });
  return inside ? "branches back to its first bytes" : problem;
}

// Fills the trampoline.
class Mover {
 public:
  Mover(Range function, uint8_t* trampoline, Patch* patch)
      : function_(function), here_(function.begin), at_(trampoline), trampoline_(trampoline), patch_(patch) {}

  const char* run() {
    uintptr_t covered = function_.begin + kJumpSize;
    while (here_ < covered && !ended_)
      if (const char* problem = step()) return problem;
    if (ended_) return is_padding(here_, covered, function_) ? nullptr : "is too short for a jump";
    at_ = emit_jump(at_, address_of(at_), here_);
    return at_ == nullptr ? "is out of reach" : nullptr;
  }

  void describe_to(CodeMemory& memory) const {
    describe_trampoline(*patch_, here_ - function_.begin, static_cast<size_t>(at_ - trampoline_), ended_, memory);
  }

 private:
  const char* step() {
    Instruction instruction;
    if (here_ >= function_.end || !decode(code_at(here_), function_.end - here_, &instruction))
      return "begins with an unknown instruction";
    note();
    at_ = emit_moved(at_, address_of(at_), code_at(here_), instruction);
    if (at_ == nullptr) return "begins with an instruction that cannot be moved";
    here_ += instruction.length;
    ended_ = instruction.flow == Flow::jump || instruction.flow == Flow::leave;
    return nullptr;
  }

  void note() {
    patch_->moves[patch_->move_count++] = {static_cast<uint8_t>(here_ - function_.begin),
                                           static_cast<uint8_t>(at_ - trampoline_)};
  }

  Range function_;
  uintptr_t here_;
  uint8_t* at_;
  uint8_t* trampoline_;
  Patch* patch_;
  bool ended_ = false;
};

const char* write_jump(const void* replacement, CodeMemory& memory, Patch* patch) {
  uintptr_t entry = address_of(patch->entry);
  uintptr_t target = reinterpret_cast<uintptr_t>(replacement);
  if (emit_jump(patch->jump, entry, target) != nullptr) return nullptr;
  uint8_t* relay = memory.take(kFarJumpSize);
  if (relay == nullptr) return "leaves no room for its patch";
  emit_far_jump(relay, target);
  return emit_jump(patch->jump, entry, address_of(relay)) != nullptr ? nullptr : "is out of reach";
}

// ---- writing ------------------------------------------------------------------------------------

// Lets the patches' pages be written while it lives. They stay executable meanwhile: there may be functions beside the
// patched ones in which threads begin that nobody could stop, because they were not there yet.
class Writable {
 public:
  bool open(const Patch* patches, size_t count) {
    for (patches_ = patches; done_ < count; ++done_)
      if (!protect(patches[done_], PAGE_EXECUTE_READWRITE, &before_[done_])) return false;
    return true;
  }
  // In the reverse order: patches may share a page.
  ~Writable() {
    while (done_ != 0) {
      --done_;
      DWORD ignored = 0;
      protect(patches_[done_], before_[done_], &ignored);
    }
  }

 private:
  static bool protect(const Patch& patch, DWORD protection, DWORD* before) {
    return VirtualProtect(patch.entry, kJumpSize, protection, before) != 0;
  }

  const Patch* patches_ = nullptr;
  size_t done_ = 0;
  DWORD before_[kMostPatches];
};

// Where a thread that stands at `address` has to go on once the patches are written.
uintptr_t place_after(const Patch* patches, size_t count, uintptr_t address) {
  for (size_t i = 0; i < count; ++i) {
    const Patch& patch = patches[i];
    uintptr_t offset = address - address_of(patch.entry);
    if (offset == 0 || offset >= kJumpSize) continue;
    for (size_t move = 0; move < patch.move_count; ++move)
      if (patch.moves[move].from == offset) return address_of(patch.original) + patch.moves[move].to;
    return 0;  // between instructions: nowhere to go on
  }
  return address;
}

// True when every thread can go on behind the patches, `move`d there if need be.
bool lead_away(StoppedThreads& threads, const Patch* patches, size_t count, bool move) {
  for (size_t i = 0; i < threads.count(); ++i) {
    uintptr_t address = threads.position(i);
    uintptr_t after = place_after(patches, count, address);
    if (after == address) continue;
    if (!move || after == 0 || !threads.set_position(i, after)) return false;
  }
  return true;
}

// In one store, unless the jump lies across two words: a thread that came when the others were stopped already runs
// either what was there or the jump.
void write(const Patch& patch) {
  using Word = uint64_t;
  uintptr_t offset = address_of(patch.entry) % sizeof(Word);
  if (offset + kJumpSize > sizeof(Word)) {
    __builtin_memcpy(patch.entry, patch.jump, kJumpSize);
    return;
  }
  auto* place = reinterpret_cast<Word*>(patch.entry - offset);
  Word word = *place;
  __builtin_memcpy(reinterpret_cast<uint8_t*>(&word) + offset, patch.jump, kJumpSize);
  __atomic_store_n(place, word, __ATOMIC_RELEASE);
}

void write(const Patch* patches, size_t count) {
  for (size_t i = 0; i < count; ++i) write(patches[i]);
}

void flush(const Patch* patches, size_t count) {
  for (size_t i = 0; i < count; ++i) FlushInstructionCache(GetCurrentProcess(), patches[i].entry, kJumpSize);
}

// While it runs no other thread does, so it must not wait for anything that one of them may hold.
const char* commit_stopped(StoppedThreads& threads, const Patch* patches, size_t count, bool move) {
  Writable pages;
  if (!pages.open(patches, count)) return "lies in a process that does not let code be changed";
  if (!lead_away(threads, patches, count, move)) return "holds a thread that cannot be moved out of the way";
  write(patches, count);
  return nullptr;
}

}  // namespace

const char* prepare(Range function, const void* replacement, CodeMemory& memory, Patch* patch) {
  *patch = {};
  patch->entry = code_at(function.begin);
  uint8_t* trampoline = memory.take(kMostMoved);
  if (trampoline == nullptr) return "leaves no room for its patch";
  patch->original = trampoline;
  Mover mover(function, trampoline, patch);
  if (const char* problem = mover.run()) return problem;
  if (const char* problem = check_body(function)) return problem;
  mover.describe_to(memory);
  return write_jump(replacement, memory, patch);
}

const char* commit(const Patch* patches, size_t count) {
  if (count > kMostPatches) return "has too many functions";
  // A running thread leaves the first bytes by itself in no time. One that does not is stopped by somebody else.
  constexpr unsigned kPatience = 50;
  constexpr unsigned kAttempts = 60;
  const char* problem = nullptr;
  for (unsigned attempt = 0; attempt < kAttempts; ++attempt) {
    StoppedThreads threads;
    if (!threads.all()) return "lies in a process whose threads cannot all be stopped";
    problem = commit_stopped(threads, patches, count, attempt >= kPatience);
    if (problem == nullptr) {
      flush(patches, count);
      return nullptr;
    }
    threads.resume();
    Sleep(attempt % 2);
  }
  return problem;
}

uint8_t* follow_jumps(uint8_t* code, Range image) {
  constexpr unsigned kMost = 4;
  for (unsigned i = 0; i < kMost; ++i) {
    Instruction instruction;
    bool known = decode(code, image.end - address_of(code), &instruction);
    if (!known || instruction.flow != Flow::jump || !image.holds(instruction.target)) break;
    code = code_at(instruction.target);
  }
  return code;
}

bool leads_to(Range function, const uint8_t* entry, Range image) {
  bool found = false;
  walk(function, [&](uintptr_t, const Instruction& instruction) {
    bool goes = instruction.flow == Flow::call || instruction.flow == Flow::jump;
    found = goes && image.holds(instruction.target) && follow_jumps(code_at(instruction.target), image) == entry;
    return !found;
  });
  return found;
}

bool ends_in_tail_call(Range function, Range image) {
  uintptr_t last = 0;
  walk(function, [&](uintptr_t here, const Instruction& instruction) {
    bool jumps = instruction.flow == Flow::jump;
    Range behind_it = {function.begin, here};
    last = jumps && !behind_it.holds(instruction.target) ? instruction.target : 0;
    return true;
  });
  return image.holds(last);
}

}  // namespace rh::redirect
