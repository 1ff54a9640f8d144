#include "heap/guards.h"

#include "base/bits.h"
#include "platform/report.h"

namespace rh::guards {

namespace {

enum class State : uint8_t {
  unused,  // never had a block
  busy,    // somebody is making one, or freeing it; for good, if its pages could not be taken back
  live,
  free,
};

struct Place {
  std::atomic<State> state{State::unused};
  uint32_t offset = 0;  // of the block, from the place's start
  SeenNumber<uint32_t> size;
  Event made, freed;
};

// Apart from the places, for all are looked at.
using Homes = std::atomic<Heap*>[kPlaces];

constinit std::atomic<Span*> g_pool{nullptr};  // the unit before the first place
RH_RARE_ZEROS constinit Place g_places[kPlaces];
RH_RARE_ZEROS constinit Homes g_homes = {};  // the heap that the block is or was of; null: of threads' own
constinit std::atomic<size_t> g_next{0}, g_made{0}, g_taken{0};

Span* span_of(size_t index) { return g_pool.load(std::memory_order_acquire) + 1 + index; }

// Null for the unit before the first.
Place* place_of(const Span* span) {
  size_t unit = static_cast<size_t>(span - g_pool.load(std::memory_order_acquire));
  return unit == 0 ? nullptr : &g_places[unit - 1];
}

// In this order: whose a block was says nothing of the one that is there now.
bool is_live_of(const Heap* heap, size_t index) {
  if (g_places[index].state.load(std::memory_order_acquire) != State::live) return false;
  schedule_point();
  return g_homes[index].load(std::memory_order_relaxed) == heap;
}

uintptr_t start_of(const Span* span, const Place& place) { return g_realm.address(span) + place.offset; }

// ---- the pool -----------------------------------------------------------------------------------

bool guard_whole(const Span* first, Units units) {
  return platform::guard(g_realm.address(first), units.bytes(), platform::GuardPrice::any);
}

RH_COLD Span* open() {
  constexpr Units kUnits{kPlaces + 1};
  Span* pool = g_arena.allocate(kUnits);
  if (pool == nullptr) return nullptr;
  Span* none = nullptr;
  if (guard_whole(pool, kUnits) && g_pool.compare_exchange_strong(none, pool)) {
    for (Span* span = pool; span < pool + kUnits.count; ++span) {
      span->units = 1;
      span->owner.store(kNobody);
      span->kind.store_release(SpanKind::guarded);
    }
    return pool;
  }
  if (platform::unguard(g_realm.address(pool), kUnits.bytes())) g_arena.free(pool);
  return g_pool.load();
}

// The place that has been free for longest, about; null when all are taken.
Place* take_place(size_t* index) {
  if (g_taken.load(std::memory_order_relaxed) >= kPlaces) return nullptr;
  for (size_t attempt = 0; attempt < kPlaces; ++attempt) {
    *index = g_next.fetch_add(1, std::memory_order_relaxed) % kPlaces;
    Place& place = g_places[*index];
    State state = place.state.load(std::memory_order_relaxed);
    bool takes = state == State::unused || state == State::free;
    if (!takes || !place.state.compare_exchange_strong(state, State::busy)) continue;
    g_taken.fetch_add(1, std::memory_order_relaxed);
    return &place;
  }
  return nullptr;
}

void leave_place(Place& place, State state) {
  place.state.store(state, std::memory_order_release);
  g_taken.fetch_sub(1, std::memory_order_relaxed);
}

// ---- what lies beside a block -------------------------------------------------------------------

struct Pages {
  uintptr_t start, end;
};

// The pages that a block needs.
Pages pages_of(uintptr_t block, size_t size) {
  if (size == 0) return {block, block};
  return {align_down(block, platform::kPageSize), align_up(block + size, platform::kPageSize)};
}

constexpr unsigned char kFilling = 0xa5;

// Of what the block's pages have before and behind it.
template <typename Visit> bool each_gap(uintptr_t block, size_t size, Visit visit) {
  Pages pages = pages_of(block, size);
  return visit(pages.start, block) && (size == 0 || visit(block + size, pages.end));
}

void fill_beside(uintptr_t block, size_t size) {
  each_gap(block, size, [](uintptr_t from, uintptr_t to) {
    __builtin_memset(reinterpret_cast<void*>(from), kFilling, to - from);
    return true;
  });
}

// Up to a multiple of a word's size.
bool is_filled(uintptr_t from, uintptr_t to) {
  constexpr uintptr_t kWordOf = ~uintptr_t{0} / 0xff * kFilling;
  for (; from < to && from % sizeof(kWordOf) != 0; ++from)
    if (*reinterpret_cast<const unsigned char*>(from) != kFilling) return false;
  for (; from < to; from += sizeof(kWordOf))
    if (*reinterpret_cast<const uintptr_t*>(from) != kWordOf) return false;
  return true;
}

bool is_unwritten_beside(uintptr_t block, size_t size) { return each_gap(block, size, is_filled); }

// ---- what is said -------------------------------------------------------------------------------

struct Described {
  Misuse block;
  bool is_live = false;

  bool there_is_one() const { return block.block != 0; }
  bool has(uintptr_t address) const { return there_is_one() && address - block.block < block.size; }
  size_t distance(uintptr_t address) const {
    if (!there_is_one()) return SIZE_MAX;
    return address < block.block ? block.block - address : address - block.block - block.size;
  }
};

Described describe(const Span* span) {
  const Place* place = place_of(span);
  State state = place != nullptr ? place->state.load(std::memory_order_acquire) : State::unused;
  if (state == State::unused) return {};
  bool live = state == State::live;
  return {{start_of(span, *place), place->size, &place->made, live ? nullptr : &place->freed}, live};
}

bool holds(const Span* span) { return span != nullptr && span->kind.load() == SpanKind::guarded; }

Text& put_block(Text& text, const Described& at) {
  text << "the block ";
  text.hex(at.block.block) << " of ";
  return text.decimal(at.block.size) << " bytes";
}

// Where an address lies, seen from the block.
void put_position(Text& text, const Described& at, uintptr_t address) {
  bool before = address < at.block.block;
  if (at.has(address))
    (text << "byte ").decimal(address - at.block.block) << " of ";
  else
    text.decimal(at.distance(address)) << (before ? " bytes before the start of " : " bytes behind the end of ");
  put_block(text, at);
}

struct Fault {
  const Described& at;
  uintptr_t address;
  platform::Access access;
};

void put_fault(Text& message, const void* fault) {
  const auto& [at, address, access] = *static_cast<const Fault*>(fault);
  constexpr const char* kAccesses[] = {"access to ", "read of ", "write to "};
  const char* what = at.has(address) ? "use after free: " : "invalid access: ";
  if (at.is_live && !at.has(address)) what = address < at.block.block ? "underflow: " : "overflow: ";
  (message << what << kAccesses[static_cast<unsigned>(access)]).hex(address);
  if (at.there_is_one())
    put_position(message << ", ", at, address);
  else
    message << ", between blocks";
}

bool is_last(const Span* span) { return span == span_of(kPlaces - 1); }

// The block meant by an address in the last page of a place, which belongs to two: the one that lies nearer, and of a
// live and a freed one the live one.
Described describe_nearer(const Span* span, uintptr_t address) {
  Described one = describe(span), other = is_last(span) ? Described{} : describe(span + 1);
  if (one.is_live != other.is_live) return one.is_live ? one : other;
  return one.distance(address) <= other.distance(address) ? one : other;
}

void look(uintptr_t address, platform::Access access) {
  const Span* span = g_realm.find(reinterpret_cast<const void*>(address));
  if (!holds(span)) return;
  bool between = address - g_realm.address(span) >= kMostSize;
  const Described at = between ? describe_nearer(span, address) : describe(span);
  const Fault fault = {at, address, access};
  tell_misuse(put_fault, &fault, at.block);
}

}  // namespace

// ---- which allocations --------------------------------------------------------------------------

static constinit std::atomic<bool> g_may_look{false}, g_looks{false};

RH_AT_START static void look_if_needed() {
  if (every() != 0 && g_may_look.load() && !g_looks.exchange(true)) platform::on_fault(look);
}

void set_every(uint64_t every) {
  watch::g_guarded_every.store(every, std::memory_order_relaxed);
  watch::look_at_passed();
  if (every != 0)
    watch::begin(watch::Watcher::guards);
  else
    watch::end(watch::Watcher::guards);
  look_if_needed();
}

RH_AT_START void look_at_faults() {
  g_may_look.store(true);
  look_if_needed();
}

// ---- blocks -------------------------------------------------------------------------------------

// On Windows the C runtimes say of a block without bytes that it has one: it is used, and copied when the block moves.
static bool is_wanted(size_t alignment, size_t size) {
  bool has_bytes = size != 0 || !kExactSizes;
  return has_bytes && size <= kMostSize && alignment <= kUnitSize && are_possible();
}

void* allocate(size_t alignment, size_t size, bool at_end, Heap* heap) {
  if (!is_wanted(alignment, size)) return nullptr;
  if (g_pool.load(std::memory_order_acquire) == nullptr && open() == nullptr) return nullptr;
  size_t index = 0;
  Place* place = take_place(&index);
  if (place == nullptr) return nullptr;
  bool ends = size == 0 || (at_end && alignment <= platform::kPageSize);
  if (alignment < kBlockAlign) alignment = kBlockAlign;
  size_t offset = ends ? align_down(kMostSize - size, alignment) : 0;
  uintptr_t block = g_realm.address(span_of(index)) + offset;
  Pages pages = pages_of(block, size);
  if (pages.start != pages.end && !platform::unguard(pages.start, pages.end - pages.start)) {
    leave_place(*place, State::unused);
    return nullptr;
  }
  fill_beside(block, size);
  place->offset = static_cast<uint32_t>(offset);
  place->size = static_cast<uint32_t>(size);
  place->freed = {};
  g_homes[index].store(heap, std::memory_order_relaxed);
  note(place->made);
  place->state.store(State::live, std::memory_order_release);
  g_made.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<void*>(block);
}

bool is_live(const Span* span) {
  const Place* place = place_of(span);
  return place != nullptr && place->state.load(std::memory_order_acquire) == State::live;
}

void* start_of(const Span* span) {
  const Place* place = place_of(span);
  bool had_block = place != nullptr && place->state.load(std::memory_order_acquire) != State::unused;
  return had_block ? reinterpret_cast<void*>(start_of(span, *place)) : nullptr;
}

size_t size_of(const Span* span) {
  const Place* place = place_of(span);
  return place != nullptr ? place->size : 0u;
}

[[noreturn]] RH_COLD static void fail_written(const Span* span) {
  Described at = describe(span);
  at.block.freed = nullptr;
  Text message;
  fatal(put_block(message, at) << " was written to behind its end or before its start, seen at free", at.block);
}

void free(Span* span, const void* pointer) {
  if (pointer != start_of(span)) fail_invalid(span, "free", pointer);
  Place& place = *place_of(span);
  State live = State::live;
  if (!place.state.compare_exchange_strong(live, State::busy)) fail_invalid(span, "free", pointer);
  if (!is_unwritten_beside(start_of(span, place), place.size)) fail_written(span);
  note(place.freed);
  if (guard_whole(span, {1})) leave_place(place, State::free);
}

Heap* heap_of(const Span* span) {
  const Place* place = place_of(span);
  return place != nullptr ? g_homes[place - g_places].load(std::memory_order_relaxed) : nullptr;
}

void free_all(const Heap* heap) {
  if (g_made.load(std::memory_order_relaxed) == 0) return;
  for (size_t index = 0; index < kPlaces; ++index)
    if (is_live_of(heap, index)) free(span_of(index), start_of(span_of(index)));
}

void fail_invalid(const Span* span, const char* function, const void* pointer) {
  Described at = describe(span);
  uintptr_t address = address_of(pointer);
  Text message;
  message << function;
  if (at.block.block == address && !at.is_live) {
    put_block(message << " of what is free already: ", at);
  } else {
    (message << " of invalid pointer ").hex(address) << ": not the start of a live block";
    if (at.there_is_one()) put_position(message << ", but ", at, address);
  }
  fatal(message, at.block);
}

Figures figures_of(const Heap* heap) {
  Figures figures = {};
  if (g_made.load(std::memory_order_relaxed) == 0) return figures;
  for (size_t index = 0; index < kPlaces; ++index) {
    if (!is_live_of(heap, index)) continue;
    figures.live += 1;
    figures.bytes += g_places[index].size;
  }
  return figures;
}

Figures figures() {
  Figures figures{g_made.load(std::memory_order_relaxed), 0, 0};
  if (figures.made == 0) return figures;
  for (const Place& place : g_places) {
    if (place.state.load(std::memory_order_acquire) != State::live) continue;
    figures.live += 1;
    figures.bytes += place.size;
  }
  return figures;
}

}  // namespace rh::guards
