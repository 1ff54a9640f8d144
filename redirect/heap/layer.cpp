#include "layer.h"

#include "functions.h"
#include "redirect/patcher/image.h"
#include "redirect/patcher/patch.h"

// Of ntdll.
extern "C" __declspec(dllimport) ULONG NTAPI RtlGetNtGlobalFlags(void);

namespace rh::heaps {

namespace {

using redirect::CodeMemory;
using redirect::Image;
using redirect::Patch;

struct Outcome {
  const void* base = nullptr;  // of ntdll; NULL: not tried
  size_t replaced = 0;
  const char* left = nullptr;      // why
  const char* function = nullptr;  // which is to blame; may be NULL
};

constinit Outcome g_outcome = {};
constinit CodeMemory g_memory = {};
constinit Patch g_patches[kRoles] = {};

const char* blame(Role role, const char* reason) {
  g_outcome.function = export_of(role).name;
  return reason;
}

// The heaps of a process that is being debugged check their blocks, and say more than ours could.
bool keeps_debug_heaps() {
  constexpr ULONG kTailCheck = 0x10, kFreeCheck = 0x20, kValidate = 0x40, kValidateAll = 0x80;
  constexpr ULONG kPageHeap = 0x02000000;
  constexpr ULONG kAny = kTailCheck | kFreeCheck | kValidate | kValidateAll | kPageHeap;
  return (RtlGetNtGlobalFlags() & kAny) != 0;
}

// Makes the patches ready. NULL, or why it cannot be done.
const char* prepare_all(const Image& ntdll, Originals* originals, size_t* count) {
  for (size_t i = 0; i < kRoles; ++i) {
    Role role = static_cast<Role>(i);
    if (replacement(role) == nullptr) continue;
    uint8_t* entry = ntdll.function(export_of(role).name);
    if (entry == nullptr) {
      if (export_of(role).required) return blame(role, "is not there");
      continue;
    }
    entry = redirect::follow_jumps(entry, ntdll.whole());
    Patch& patch = g_patches[*count];
    const char* problem = redirect::prepare(ntdll.extent(entry), replacement(role), g_memory, &patch);
    if (problem != nullptr) return blame(role, problem);
    (*originals)[role] = patch.original;
    ++*count;
  }
  return nullptr;
}

const char* replace_in(const Image& ntdll, size_t* count) {
  if (keeps_debug_heaps()) return "keeps debug heaps";
  if (!ntdll.valid()) return "is no image of this kind of process";
  if (!g_memory.open_near(ntdll.whole())) return "has no free memory near it";
  Originals originals;
  if (const char* problem = prepare_all(ntdll, &originals, count)) return problem;
  if (!g_memory.seal()) return "lies in a process that forbids new code";
  if (const char* problem = begin(originals)) return problem;
  return redirect::commit(g_patches, *count);
}

}  // namespace

bool replace() {
  g_outcome.base = GetModuleHandleW(L"ntdll.dll");
  size_t count = 0;
  g_outcome.left = replace_in(Image(g_outcome.base), &count);
  if (g_outcome.left == nullptr)
    g_outcome.replaced = count;
  else
    g_memory.release();
  return g_outcome.left == nullptr;
}

bool is_replaced() { return was_tried() && g_outcome.left == nullptr; }

bool was_tried() { return g_outcome.base != nullptr; }

bool was_left() { return g_outcome.left != nullptr; }

void describe(Text& text) {
  text << "ntdll.dll at ";
  text.hex(reinterpret_cast<uintptr_t>(g_outcome.base)) << ": ";
  if (g_outcome.left == nullptr) {
    (text << "replaced heap (").decimal(g_outcome.replaced) << ')';
    return;
  }
  text << "left, ";
  text << (g_outcome.function != nullptr ? g_outcome.function : "it") << ' ' << g_outcome.left;
}

}  // namespace rh::heaps
