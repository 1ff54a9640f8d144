#include "redirect.h"

#include <atomic>

#include "hosts.h"
#include "names.h"
#include "redirect/heap/layer.h"
#include "redirect/patcher/image.h"
#include "redirect/patcher/patch.h"
#include "runtimes.h"

namespace rh::redirect {

namespace {

constexpr size_t kMostName = 32;

struct FamilyOutcome {
  unsigned replaced = 0;           // functions
  const char* reason = nullptr;    // why they were left
  const char* function = nullptr;  // which is to blame; may be NULL
};

struct Runtime {
  const void* base = nullptr;  // NULL: the slot is free
  char name[kMostName] = {};
  bool debug_heap = false;
  const char* left = nullptr;  // why the whole runtime was left
  FamilyOutcome families[kFamilies];
  CodeMemory memory;
};

// A function to be replaced.
struct Candidate {
  const Export* from;
  uint8_t* entry;
  bool leads_on;
};

struct Candidates {
  Candidate all[kMostPatches];
  size_t count = 0;
};

constinit Runtime g_runtimes[kSlots] = {};
constinit unsigned g_without_slot = 0;
constinit crt::Host g_no_host = {};
constinit std::atomic<const crt::Host*> g_main_host{&g_no_host};

// Working space for one runtime at a time: too large for a stack of unknown depth.
constinit Candidates g_candidates = {};
constinit Patch g_patches[kMostPatches] = {};

Runtime* find(const void* base) {
  for (Runtime& runtime : g_runtimes)
    if (runtime.base == base) return &runtime;
  return nullptr;
}

FamilyOutcome& outcome_of(Runtime& runtime, Family family) { return runtime.families[static_cast<size_t>(family)]; }

uint8_t* entry_of(const Image& image, const char* name) {
  uint8_t* code = image.function(name);
  return code != nullptr ? follow_jumps(code, image.whole()) : nullptr;
}

// Whether free's work is done by `_free_dbg`, with a header before every block, and not the other way round.
bool has_debug_heap(const Image& image) {
  const uint8_t* debug = entry_of(image, "_free_dbg");
  const uint8_t* plain = entry_of(image, "free");
  if (debug == nullptr || debug == plain) return false;
  return !leads_to(image.extent(debug), plain, image.whole());
}

bool concerns(const Export& name, bool debug_heap) {
  // Below a debug heap lies a plain one for its raw memory. Above a plain heap, debug functions just pass on.
  if (debug_heap) return !name.inmost_twin;
  return family_of(name.role) != Family::debug;
}

void add(Candidates& candidates, const Export* name, uint8_t* entry) {
  for (size_t i = 0; i < candidates.count; ++i)
    if (candidates.all[i].entry == entry) return;  // another name for the same
  candidates.all[candidates.count++] = {name, entry, false};
}

void collect(const Image& image, bool debug_heap, Candidates& candidates) {
  candidates.count = 0;
  for (const Export* name = exports_begin(); name != exports_end(); ++name) {
    if (!concerns(*name, debug_heap)) continue;
    if (uint8_t* entry = entry_of(image, name->name)) add(candidates, name, entry);
  }
}

bool has(const Candidates& candidates, Role role) {
  for (size_t i = 0; i < candidates.count; ++i)
    if (candidates.all[i].from->role == role) return true;
  return false;
}

bool is_complete(const Candidates& candidates) {
  return has(candidates, Role::malloc) && has(candidates, Role::calloc) && has(candidates, Role::realloc) &&
         has(candidates, Role::free);
}

// Whether a function of role `outer` may do its work by a call of one of role `inner`, and nothing else.
bool may_stand_for(Role inner, Role outer) {
  bool is_new = outer == Role::operator_new_debug || outer == Role::operator_new_nothrow;
  return inner == outer || (inner == Role::operator_new && is_new);
}

// Whether the candidate only leads to another, as malloc and `_malloc_base` do, one way or the other.
bool leads_on(const Candidates& candidates, const Candidate& outer, const Image& image) {
  Range function = image.extent(outer.entry);
  for (size_t i = 0; i < candidates.count; ++i) {
    const Candidate& inner = candidates.all[i];
    if (inner.entry == outer.entry || !may_stand_for(inner.from->role, outer.from->role)) continue;
    if (leads_to(function, inner.entry, image.whole())) return true;
  }
  return false;
}

// Drops those that are served by another as soon as that one is.
void drop_leading_on(Candidates& candidates, const Image& image) {
  for (size_t i = 0; i < candidates.count; ++i)
    candidates.all[i].leads_on = leads_on(candidates, candidates.all[i], image);
  size_t kept = 0;
  for (size_t i = 0; i < candidates.count; ++i)
    if (!candidates.all[i].leads_on) candidates.all[kept++] = candidates.all[i];
  candidates.count = kept;
}

// Makes the patches ready, in the order of the candidates. Families with a function that cannot be patched get a
// reason.
void prepare_all(Runtime& runtime, const Image& image, unsigned slot) {
  for (size_t i = 0; i < g_candidates.count; ++i) {
    const Candidate& candidate = g_candidates.all[i];
    Role role = candidate.from->role;
    FamilyOutcome& outcome = outcome_of(runtime, family_of(role));
    const char* problem =
        prepare(image.extent(candidate.entry), replacement(slot, role), runtime.memory, &g_patches[i]);
    if (problem == nullptr || outcome.reason != nullptr) continue;
    outcome.reason = problem;
    outcome.function = candidate.from->name;
  }
}

// The family whose problem keeps all that stand together with it from being replaced.
const FamilyOutcome* obstacle(const Runtime& runtime) {
  for (size_t i = 0; i < kFamilies; ++i)
    if (stands_together(static_cast<Family>(i)) && runtime.families[i].reason != nullptr) return &runtime.families[i];
  return nullptr;
}

// Drops the patches of families that are left. Gives how many remain, and notes the originals of those.
size_t keep_whole_families(Runtime& runtime, Originals* originals) {
  size_t kept = 0;
  for (size_t i = 0; i < g_candidates.count; ++i) {
    Role role = g_candidates.all[i].from->role;
    FamilyOutcome& outcome = outcome_of(runtime, family_of(role));
    if (outcome.reason != nullptr) continue;
    ++outcome.replaced;
    if ((*originals)[role] == nullptr) (*originals)[role] = g_patches[i].original;
    g_patches[kept++] = g_patches[i];
  }
  return kept;
}

// Whether sizes are told by an inner part of msize, which other functions then call by a convention of their own, as in
// Microsoft's 32-bit runtime: for blocks of ours too they ask the system's heap. (A debug heap's is `_msize_dbg`, which
// is replaced.)
bool asks_for_sizes_inside(const Image& image) {
  const uint8_t* msize = entry_of(image, "_msize");
  return msize != nullptr && ends_in_tail_call(image.extent(msize), image.whole());
}

// NULL, or why nothing of it was replaced.
const char* replace_in(Runtime& runtime, const Image& image, unsigned slot) {
  if (!image.valid()) return "is no image of this kind of process";
  runtime.debug_heap = has_debug_heap(image);
  collect(image, runtime.debug_heap, g_candidates);
  drop_leading_on(g_candidates, image);
  if (!is_complete(g_candidates)) return "exports no complete malloc of its own";
  if (has_blocks_of_its_own() && !runtime.debug_heap && asks_for_sizes_inside(image) && !heaps::is_replaced())
    return "asks the system's heap for sizes, which is not replaced";
  if (!runtime.memory.open_near(image.whole())) return "has no free memory near it";
  prepare_all(runtime, image, slot);
  if (obstacle(runtime) != nullptr) return "must be replaced whole";
  size_t count = keep_whole_families(runtime, &g_slots[slot].originals);
  if (!runtime.memory.seal()) return "lies in a process that forbids new code";
  set_host(slot, image, runtime.debug_heap);
  return commit(g_patches, count);
}

void leave(Runtime& runtime, unsigned slot, const char* reason) {
  runtime.left = reason;
  runtime.memory.release();
  g_slots[slot] = {};
  for (FamilyOutcome& outcome : runtime.families) outcome.replaced = 0;
}

void name_it(Runtime& runtime, const Module& module) {
  size_t length = 0;
  for (; length < module.length && length + 1 < kMostName; ++length) {
    wchar_t letter = module.name[length];
    runtime.name[length] = letter >= ' ' && letter < 0x7F ? static_cast<char>(letter) : '?';
  }
  runtime.name[length] = 0;
}

void describe_families(Text& text, const Runtime& runtime, bool replaced) {
  const char* separator = replaced ? "replaced " : "left ";
  for (size_t i = 0; i < kFamilies; ++i) {
    const FamilyOutcome& outcome = runtime.families[i];
    if (replaced ? outcome.replaced == 0 : outcome.reason == nullptr) continue;
    text << separator << name_of(static_cast<Family>(i));
    if (replaced)
      (text << " (").decimal(outcome.replaced) << ')';
    else
      text << " because " << outcome.function << ' ' << outcome.reason;
    separator = ", ";
  }
}

bool is_partly_left(const Runtime& runtime) {
  for (const FamilyOutcome& outcome : runtime.families)
    if (outcome.reason != nullptr) return true;
  return false;
}

void describe(Text& text, const Runtime& runtime) {
  text << runtime.name << " at ";
  text.hex(reinterpret_cast<uintptr_t>(runtime.base)) << ": ";
  if (runtime.left != nullptr) {
    text << "left, it " << runtime.left;
    if (obstacle(runtime) != nullptr) describe_families(text << ": ", runtime, false);
    return;
  }
  describe_families(text, runtime, true);
  if (is_partly_left(runtime)) describe_families(text << "; ", runtime, false);
  if (runtime.debug_heap) text << "; a debug heap";
}

bool is_universal(const Runtime& runtime) {
  constexpr const char* kNames[] = {"ucrtbase.dll", "ucrtbased.dll"};
  return same_text(runtime.name, kNames[0]) || same_text(runtime.name, kNames[1]);
}

void choose_main_host() {
  const crt::Host* chosen = &g_no_host;
  for (const Runtime& runtime : g_runtimes) {
    if (runtime.base == nullptr || runtime.left != nullptr) continue;
    bool first = chosen == &g_no_host;
    if (first || is_universal(runtime)) chosen = &g_slots[&runtime - g_runtimes].host;
  }
  g_main_host.store(chosen, std::memory_order_release);
}

}  // namespace

bool is_new_runtime(const Module& module) {
  return is_runtime(module.name, module.length) && find(module.base) == nullptr;
}

bool replace(const Module& module) {
  Runtime* runtime = find(nullptr);
  if (runtime == nullptr) {
    ++g_without_slot;
    return false;
  }
  *runtime = {};
  name_it(*runtime, module);
  runtime->base = module.base;
  unsigned slot = static_cast<unsigned>(runtime - g_runtimes);
  const char* problem = replace_in(*runtime, Image(module.base), slot);
  if (problem != nullptr) leave(*runtime, slot, problem);
  choose_main_host();
  return problem == nullptr;
}

void forget(const void* base) {
  Runtime* runtime = find(base);
  if (runtime == nullptr) return;
  g_slots[runtime - g_runtimes] = {};
  runtime->memory.release();
  *runtime = {};
  choose_main_host();
}

bool has_replaced() { return g_main_host.load(std::memory_order_acquire) != &g_no_host; }

const crt::Host& main_host() { return *g_main_host.load(std::memory_order_acquire); }

void describe(Text& text) {
  for (const Runtime& runtime : g_runtimes) {
    if (runtime.base == nullptr) continue;
    describe(text, runtime);
    text << '\n';
  }
  if (g_without_slot != 0) text.decimal(g_without_slot) << " more left, there are too many\n";
}

void describe(Text& text, const void* base) {
  if (const Runtime* runtime = find(base)) describe(text, *runtime);
}

bool describe_left(void (*tell)(const Text& line)) {
  bool any = false;
  for (const Runtime& runtime : g_runtimes) {
    if (runtime.base == nullptr) continue;
    if (runtime.left == nullptr && !is_partly_left(runtime)) continue;
    Text line;
    describe(line, runtime);
    tell(line);
    any = true;
  }
  return any;
}

}  // namespace rh::redirect
