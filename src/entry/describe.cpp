#include "entry/describe.h"

#include "arena/realm.h"
#include "entry/options.h"
#include "entry/origin.h"
#include "heap/limit.h"
#include "heap/stats.h"
#include "platform/platform.h"
#include "reheap/reheap.h"

#define RH_TEXT_OF(value) RH_TEXT_OF_(value)
#define RH_TEXT_OF_(value) #value

namespace rh::describe {

namespace {

#if defined(__clang__)
#define RH_COMPILER "clang " RH_TEXT_OF(__clang_major__) "." RH_TEXT_OF(__clang_minor__)
#else
#define RH_COMPILER "gcc " RH_TEXT_OF(__GNUC__) "." RH_TEXT_OF(__GNUC_MINOR__)
#endif

#if defined(__x86_64__)
#define RH_ARCHITECTURE "x86_64"
#elif defined(__i386__)
#define RH_ARCHITECTURE "i686"
#elif defined(__aarch64__)
#define RH_ARCHITECTURE "aarch64"
#elif defined(__riscv)
#define RH_ARCHITECTURE "riscv64"
#endif

#if UINTPTR_MAX > 0xffffffff
#define RH_WIDTH " 64-bit"
#else
#define RH_WIDTH " 32-bit"
#endif

constexpr const char* kBuild = REHEAP_BUILD " " RH_COMPILER " " RH_ARCHITECTURE RH_WIDTH;

void realm(Json& json) {
  json.open("realm", '{');
  json.address("base", g_realm.first_address());
  json.number("reserved", g_realm.reserved());
  json.number("window", g_realm.window_size());
  json.close('}');
}

void memory(Json& json, const stats::Figures& figures) {
  json.number("reserved", figures.reserved);
  json.number("committed", figures.arena.committed);
  json.number("committed_peak", figures.arena.committed_peak);
  json.number("in_use", figures.in_use);
  json.number("spans_in_use", figures.arena.in_use);
  json.number("spans_in_use_peak", figures.arena.in_use_peak);
  json.number("free_dirty", figures.arena.dirty);
  json.number("metadata", figures.metadata);
  json.number("returned", figures.arena.returned);
  json.number("heaps", figures.heaps);
}

// 0: none.
size_t limit_of(size_t bytes) { return bytes != Arena::kUnlimited ? bytes : 0; }

void limits(Json& json) {
  limit::Figures figures = limit::figures();
  json.open("limit", '{');
  json.number("soft", limit_of(figures.now.limit.soft));
  json.number("hard", limit_of(figures.now.limit.hard));
  json.number("held", figures.now.held);
  json.number("soft_met", figures.soft_met);
  json.number("hard_met", figures.hard_met);
  json.close('}');
}

void classes(Json& json, const stats::Figures& figures) {
  json.open("classes", '[');
  for (size_t index = 0; index < size_class::kCount; ++index) {
    const stats::ClassFigures& of_class = figures.classes[index];
    if (of_class.slabs == 0) continue;
    json.open(nullptr, '{');
    json.number("size", size_class::size_of(index));
    json.number("slabs", of_class.slabs);
    json.number("blocks", of_class.blocks);
    json.number("in_use", of_class.in_use);
    json.close('}');
  }
  json.close(']');
  json.open("large", '{');
  json.number("blocks", figures.large_blocks);
  json.number("bytes", figures.large_bytes);
  json.close('}');
  json.open("guarded", '{');
  json.number("blocks", figures.guards.live);
  json.number("bytes", figures.guards.bytes);
  json.number("made", figures.guards.made);
  json.close('}');
}

// Of a program that has tags, and those that are not used.
void by_tag(Json& json, const stats::ByTag& figures) {
  if (tags::count() == 1) return;
  json.open("tags", '[');
  for (tags::Tag tag = 0; tag < tags::count(); ++tag) {
    json.open(nullptr, '{');
    json.string("name", tags::name_of(tag));
    json.number("in_use", figures[tag].in_use);
    json.number("blocks", figures[tag].blocks);
    json.number("held", figures[tag].held);
    if (tag != tags::kUntagged) {
      const Account& account = tags::account_of(tag);
      json.number("held_peak", account.peak());
      json.number("limit", account.limit());
      json.number("refused", account.refused());
    }
    json.close('}');
  }
  json.close(']');
}

void own_heaps(Json& json) {
  stats::OwnHeaps own = stats::own_heaps();
  if (own.count == 0) return;
  json.open("own_heaps", '{');
  json.number("heaps", own.count);
  json.number("held", own.held);
  json.close('}');
}

void calls(Json& json) {
  json.open("os_calls", '{');
  for (size_t kind = 0; kind < static_cast<size_t>(platform::OsCall::count); ++kind) {
    platform::OsCall call = static_cast<platform::OsCall>(kind);
    json.number(platform::os_call_name(call), platform::os_calls(call));
  }
  json.close('}');
}

void paths(Json& json, const stats::Figures& figures) {
  json.open("remote", '{');
  json.number("frees", figures.remote_frees);
  json.number("batches", figures.remote_batches);
  json.close('}');
  json.open("slow_paths", '{');
  json.number("refill", figures.refills);
  json.number("slab", figures.slabs_taken);
  json.number("span", figures.arena.spans_taken);
  json.number("free", figures.marks);
  json.close('}');
}

}  // namespace

constinit Describe g_replaced = nullptr;
constinit Serves g_serves = nullptr;

const char* version() {
  return RH_TEXT_OF(RH_VERSION_MAJOR) "." RH_TEXT_OF(RH_VERSION_MINOR) "." RH_TEXT_OF(RH_VERSION_PATCH);
}

void process(Text& text) {
  Path library = origin::library_of(reinterpret_cast<const void*>(&rh_malloc));
  Path served_by = origin::malloc_server();
  Json json(text);
  json.open(nullptr, '{');
  json.string("library", library.text);
  json.string("malloc_served_by", served_by.text);
  const bool serves = g_serves == nullptr || g_serves();
  json.boolean("overridden", serves && same_text(library.text, served_by.text));
  json.string("version", version());
  json.string("build", kBuild);
  json.boolean("hardened", kHardened);
  json.number("pid", platform::process_id());
  json.open("options", '{');
  options::describe(json);
  json.close('}');
  limits(json);
  realm(json);
  if (g_replaced != nullptr) g_replaced(json);
  json.close('}');
}

void statistics(Text& text) {
  stats::Figures figures;
  stats::ByTag tagged;
  stats::gather(&figures, &tagged);
  Json json(text);
  json.open(nullptr, '{');
  json.string("version", version());
  json.number("pid", platform::process_id());
  memory(json, figures);
  limits(json);
  classes(json, figures);
  by_tag(json, tagged);
  own_heaps(json);
  calls(json);
  paths(json, figures);
  json.close('}');
}

}  // namespace rh::describe
