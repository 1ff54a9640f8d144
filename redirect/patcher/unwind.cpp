#include "unwind.h"

#include <windows.h>

namespace rh::redirect {

#if defined(__x86_64__) && !defined(__arm64ec__)

namespace {

// As "x64 exception handling" in Microsoft's documentation has it; no header does.
struct UnwindInfo {
  static constexpr size_t kMostCodes = 24;
  static constexpr uint8_t kChained = 4 << 3;  // of the flags, which stand above the version

  uint8_t version_and_flags;
  uint8_t prolog_size;
  uint8_t code_count;
  uint8_t frame;
  uint16_t codes[kMostCodes];  // the last instruction's first

  uint8_t version() const { return version_and_flags & 7; }
};

uint8_t offset_of(uint16_t code) { return static_cast<uint8_t>(code); }  // of the instruction's end
unsigned operation_of(uint16_t code) { return code >> 8 & 0xF; }

constexpr unsigned kSetsFrame = 3, kEpilog = 6;

// How many places the code takes with its operands; 0 when it is not known.
unsigned places_of(uint16_t code) {
  constexpr unsigned kAllocatesMuch = 1;
  constexpr uint8_t kPlaces[] = {1, 2, 1, 1, 2, 3, 1, 0, 2, 3, 1};
  unsigned operation = operation_of(code);
  if (operation == kAllocatesMuch) return code >> 12 == 0 ? 2 : 3;
  return operation < sizeof(kPlaces) ? kPlaces[operation] : 0;
}

// Where in the trampoline lies what is `offset` bytes from the entry; 0 when that is no start of an instruction.
uint8_t moved_to(const Patch& patch, size_t offset) {
  for (size_t i = 0; i < patch.move_count; ++i)
    if (patch.moves[i].from == offset) return patch.moves[i].to;
  return 0;
}

// What `from` says of the first `moved` bytes of its function, which end at `end` in the trampoline. False when it
// cannot be told.
bool translate(const UnwindInfo& from, const Patch& patch, size_t moved, uint8_t end, UnwindInfo* to) {
  bool known = from.version() == 1 || from.version() == 2;
  if (!known || (from.version_and_flags & UnwindInfo::kChained) != 0) return false;
  *to = {};
  to->version_and_flags = 1;
  unsigned places = 0;
  for (unsigned at = 0; at < from.code_count; at += places) {
    uint16_t code = from.codes[at];
    places = places_of(code);
    if (places == 0) return false;
    // Epilogs are found by their instructions too.
    if (operation_of(code) == kEpilog || offset_of(code) > moved) continue;
    uint8_t offset = offset_of(code) == moved ? end : moved_to(patch, offset_of(code));
    if (offset == 0 || to->code_count + places > UnwindInfo::kMostCodes) return false;
    if (operation_of(code) == kSetsFrame) to->frame = from.frame;
    uint16_t* copy = &to->codes[to->code_count];
    __builtin_memcpy(copy, &from.codes[at], places * sizeof(code));
    *copy = static_cast<uint16_t>((code & 0xFF00) | offset);
    if (to->prolog_size < offset) to->prolog_size = offset;
    to->code_count = static_cast<uint8_t>(to->code_count + places);
  }
  return true;
}

}  // namespace

void describe_trampoline(const Patch& patch, size_t moved, size_t size, bool whole, CodeMemory& memory) {
  DWORD64 base = 0;
  const auto* function = RtlLookupFunctionEntry(reinterpret_cast<uintptr_t>(patch.entry), &base, nullptr);
  if (function == nullptr) return;  // it leaves the stack alone
  const auto* from = reinterpret_cast<const UnwindInfo*>(base + function->UnwindData);
  size_t end = whole ? size : size - kJumpSize;
  UnwindInfo info;
  if (!translate(*from, patch, moved, static_cast<uint8_t>(end), &info)) return;
  // Within a prolog no unwinder takes the jump back for the end of the function.
  if (!whole) info.prolog_size = static_cast<uint8_t>(size);
  constexpr size_t kHead = offsetof(UnwindInfo, codes);
  size_t length = kHead + info.code_count * sizeof(info.codes[0]);
  uint8_t* place = memory.take(length);
  if (place == nullptr) return;
  __builtin_memcpy(place, &info, length);
  memory.add_unwind(patch.original, size, place);
}

#else

void describe_trampoline(const Patch&, size_t, size_t, bool, CodeMemory&) {}

#endif

}  // namespace rh::redirect
