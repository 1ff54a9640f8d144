#include "entry/options.h"

#include "arena/realm.h"
#include "base/compiler.h"
#include "entry/limit_option.h"
#include "entry/profiling.h"
#include "hardened/delay.h"
#include "hardened/hardened.h"
#include "hardened/misuse.h"
#include "heap/guards.h"
#include "heap/idle.h"
#include "heap/relief.h"
#include "platform/memory_tags.h"
#include "platform/path.h"
#include "platform/platform.h"
#include "platform/report.h"

namespace rh::options {

namespace {

constinit bool g_verbose = false;
constinit unsigned g_layers = 0;  // an index of kLayers
RH_RARE_ZEROS constinit OptionPath g_stats = {};
RH_RARE_ZEROS constinit OptionPath g_doctor = {};
RH_RARE_ZEROS constinit OptionPath g_misuse_json = {};
constinit Window g_window = {};

constexpr const char* kFile = "a file's path of less than 480 bytes, or 0 for none (./yes is a file of that name)";
constexpr const char* kStats =
    "1 (to stderr), 0 or off (none), or a file's path of less than 480 bytes (./yes is a file of that name)";

bool set_stats(const char* value) {
  return same_text(value, "1") ? set_path(value, &g_stats) : set_file(value, &g_stats);
}

bool set_doctor(const char* value) { return set_file(value, &g_doctor); }

bool set_misuse_json(const char* value) {
  if (!set_file(value, &g_misuse_json)) return false;
  set_misuse_file(g_misuse_json.text[0] != 0 ? g_misuse_json.text : nullptr);
  return true;
}

bool set_switch(const char* value, bool* on) {
  bool yes = same_text(value, "1");
  if (!yes && !same_text(value, "0")) return false;
  *on = yes;
  return true;
}

bool set_strict(const char* value) {
  bool strict = false;
  if (!kHardened || !set_switch(value, &strict)) return false;
  if constexpr (kHardened) hardened::g_strict.store(strict, std::memory_order_relaxed);
  return true;
}

bool set_misuse(const char* value) {
  bool goes_on = same_text(value, "report");
  if (!kHardened || (!goes_on && !same_text(value, "end"))) return false;
  if constexpr (kHardened) hardened::g_goes_on.store(goes_on, std::memory_order_relaxed);
  return true;
}

bool set_quarantine(const char* value) {
  uint64_t blocks = 0;
  const char* end = nullptr;
  if (!kHardened || !parse_number(value, &blocks, &end) || *end != 0) return false;
  if (blocks == 0 || blocks > hardened::kMostQuarantine) return false;
  if constexpr (kHardened) hardened::g_quarantine.store(static_cast<unsigned>(blocks), std::memory_order_relaxed);
  return true;
}

constexpr const char* kTagChecks[] = {"off", "sync", "async"};
constinit unsigned g_tag_checks = 1;  // an index of them, and of platform::TagChecks

bool set_one_of(const char* value, const char* const* words, unsigned count, unsigned* index) {
  for (unsigned at = 0; at < count; ++at) {
    if (!same_text(value, words[at])) continue;
    *index = at;
    return true;
  }
  return false;
}

bool set_memory_tags(const char* value) {
  return platform::kHasTags && set_one_of(value, kTagChecks, 3, &g_tag_checks);
}

bool set_sample_guard(const char* value) {
  constexpr uint64_t kMost = 1000000000;
  uint64_t every = 0;
  const char* end = nullptr;
  if (kHardened || !parse_number(value, &every, &end) || *end != 0 || every > kMost) return false;
  if (every != 0 && !guards::are_possible()) return false;
  guards::set_every(every);
  return true;
}

constexpr const char* kLayers[] = {"both", "crt", "heap", "none"};
enum : unsigned { kBoth, kCrt, kHeap };

bool set_layers(const char* value) { return set_one_of(value, kLayers, 4, &g_layers); }

bool set_decay(const char* value) {
  constexpr uint64_t kMost = 600000;
  uint64_t milliseconds = 0;
  const char* end = nullptr;
  if (!parse_number(value, &milliseconds, &end) || *end != 0 || milliseconds > kMost) return false;
  idle::set_decay_ms(milliseconds);
  return true;
}

bool set_huge_pages(const char* value) {
  bool huge = false;
  if (!set_switch(value, &huge) || (huge && !platform::can_prefer_huge())) return false;
  g_realm.prefer_huge(huge ? HugePages::all : HugePages::none);
  return true;
}

bool set_limit(const char* value) {
  limit::Rule rule;
  if (!limit_option::parse(value, &rule)) return false;
  limit::set(rule);
  relief::answer();
  return true;
}

bool set_whole_size(const char* text, uint64_t* size) {
  const char* end = nullptr;
  return parse_size(text, size, &end) && *end == 0;
}

bool set_profile_rate(const char* value) {
  uint64_t every = 0;
  return !kHardened && set_whole_size(value, &every) && profiling::set_every(every);
}

bool set_profile_signal(const char* value) {
  uint64_t number = 0;
  const char* end = nullptr;
  return !kHardened && parse_number(value, &number, &end) && *end == 0 && profiling::set_signal(number);
}

bool apply_window() { return g_realm.set_window(g_window); }

bool set_window(const char* value) {
  constexpr uint64_t kLeast = uint64_t{16} << 20;
  constexpr uint64_t kMost = kMostWindow;
  uint64_t size = 0;
  if (!k64Bit || !set_whole_size(value, &size) || size < kLeast || size > kMost) return false;
  g_window.size = size;
  return apply_window();
}

bool set_window_at(const char* value) {
  uint64_t address = 0;
  const char* end = nullptr;
  if (!k64Bit) return false;
  if (same_text(value, "low")) {
    g_window.place = Window::Place::low;
  } else if (same_text(value, "image")) {
    g_window.place = Window::Place::image;
  } else if (parse_number(value, &address, &end) && *end == 0 && address % kUnitSize == 0 && address != 0) {
    g_window.place = Window::Place::address;
    g_window.address = address;
  } else {
    return false;
  }
  return apply_window();
}

struct Option {
  const char* name;
  const char* allowed;
  bool (*set)(const char* value);
  bool while_running;  // can still change once memory is in use
};

constexpr Option kOptions[] = {
    {"stats", kStats, set_stats, true},
    {"verbose", "0 or 1", [](const char* value) { return set_switch(value, &g_verbose); }, true},
    {"layers", "both, crt, heap or none", set_layers, false},
    {"decay_ms", "0 to 600000", set_decay, true},
    {"limit", limit_option::kAllowed, set_limit, true},
    {"huge_pages", "0 or 1; 0 where the system cannot be asked for huge pages", set_huge_pages, false},
    {"window", k64Bit ? "16M to 64T" : "nothing in a 32-bit process", set_window, false},
    {"window_at",
     k64Bit ? "low, image or an address that is a multiple of 16 KiB (with a window of at most 4G)"
            : "nothing in a 32-bit process",
     set_window_at, false},
    {"misuse", kHardened ? "end or report" : "nothing in a build that is not hardened", set_misuse, true},
    {"strict", kHardened ? "0 or 1" : "nothing in a build that is not hardened", set_strict, true},
    {"quarantine", kHardened ? "1 to 256" : "nothing in a build that is not hardened", set_quarantine, true},
    {"memory_tags",
     platform::kHasTags ? "sync, async or off" : "nothing in a build that is not hardened, nor but on arm64 Linux",
     set_memory_tags, false},
    {"misuse_json", kFile, set_misuse_json, true},
    {"sample_guard",
     kHardened ? "nothing in a hardened build, which guards all blocks"
     : platform::kMostPageSize == platform::kPageSize
         ? "0 to 1000000000: one allocation in so many gets pages of its own"
         : "0 to 1000000000: one allocation in so many gets pages of its own; 0 where these are longer than 4 KiB",
     set_sample_guard, true},
    {"profile", kHardened ? "nothing in a hardened build" : kFile,
     [](const char* value) { return !kHardened && profiling::set_target(value); }, false},
    {"profile_rate", kHardened ? "nothing in a hardened build" : "1 to 1T: one byte in so many is sampled",
     set_profile_rate, true},
    {"profile_signal",
     kHardened ? "nothing in a hardened build"
               : "the number of a signal that the program does not use (not on Windows)",
     set_profile_signal, false},
    {"doctor", kFile, set_doctor, false},
};

constexpr char kPrefix[] = "REHEAP_";
constexpr size_t kPrefixLength = sizeof(kPrefix) - 1;

// "decay_ms" -> "REHEAP_DECAY_MS"
struct VariableName {
  char text[32];
};

VariableName variable_of(const char* name) {
  VariableName variable = {};
  __builtin_memcpy(variable.text, kPrefix, kPrefixLength);
  char* to = variable.text + kPrefixLength;
  for (; *name != 0; ++name) *to++ = *name >= 'a' && *name <= 'z' ? static_cast<char>(*name - 'a' + 'A') : *name;
  *to = 0;
  return variable;
}

const Option* find(const char* name) {
  for (const Option& option : kOptions)
    if (same_text(option.name, name)) return &option;
  return nullptr;
}

// What was given, as much of it as leaves room for what would be right.
void put_given(Text& message, const char* value) {
  constexpr size_t kShown = 100;
  size_t length = __builtin_strlen(value);
  const bool whole = length <= kShown;
  if (!whole) length = kShown;
  // Between two characters of UTF-8.
  while (!whole && length != 0 && (value[length] & 0xc0) == 0x80) --length;
  for (size_t at = 0; at < length; ++at) message << value[at];
  if (!whole) message << "...";
}

void refuse(const Option& option, const char* value) {
  Text message;
  message << variable_of(option.name).text << '=';
  put_given(message, value);
  message << " is not possible; allowed: " << option.allowed;
  report(message);
}

void refuse_unknown(const char* name) {
  Text message;
  message << "no option is called " << name << "; there are:";
  for (const Option& option : kOptions) message << ' ' << option.name;
  report(message);
}

// How names begin that the command, the lab and the project's own tools read.
constexpr const char* kOfTools[] = {"LIBRARY", "RECORD", "WITNESS", "LAB", "CACHE", "TEST", "WINE"};

bool is_known(const char* entry) {
  for (const Option& option : kOptions) {
    VariableName variable = variable_of(option.name);
    if (begins_with(entry, variable.text) && entry[__builtin_strlen(variable.text)] == '=') return true;
  }
  for (const char* word : kOfTools)
    if (begins_with(entry + kPrefixLength, word)) return true;
  return false;
}

void look_at_variable(const char* entry) {
  if (!begins_with(entry, kPrefix) || is_known(entry)) return;
  Text message;
  while (*entry != 0 && *entry != '=') message << *entry++;
  message << " is no option; there are:";
  for (const Option& option : kOptions) message << ' ' << variable_of(option.name).text;
  report(message);
}

void refuse_late(const Option& option) {
  Text message;
  message << option.name << " can only be set in the environment (" << variable_of(option.name).text
          << "), before the program starts";
  report(message);
}

// Before the first memory is taken, by the only thread.
void place_window() {
  if (g_window.place == Window::Place::anywhere) return;
  g_realm.open();
  if (g_realm.window().place == g_window.place) return;
  Text message;
  report(message << variable_of("window_at").text << ": no room there; the heap lies where the system puts it");
}

}  // namespace

void load() {
  for (const Option& option : kOptions) {
    const char* value = platform::environment(variable_of(option.name).text);
    if (value != nullptr && *value != 0) set(option.name, value, When::starting);
  }
  if constexpr (platform::kHasTags) platform::begin_tags(static_cast<platform::TagChecks>(g_tag_checks));
  place_window();
  profiling::begin_with_process();
}

void refuse_unknown_variables() { platform::each_variable(look_at_variable); }

bool set(const char* name, const char* value, When when) {
  constexpr const char* kNull = "(null)";
  const Option* option = name != nullptr ? find(name) : nullptr;
  if (option == nullptr) {
    refuse_unknown(name != nullptr ? name : kNull);
    return false;
  }
  if (when == When::running && !option->while_running) {
    refuse_late(*option);
    return false;
  }
  if (value != nullptr && option->set(value)) return true;
  refuse(*option, value != nullptr ? value : kNull);
  return false;
}

bool verbose() { return g_verbose; }
bool layer_crt() { return g_layers == kBoth || g_layers == kCrt; }
bool layer_heap() { return g_layers == kBoth || g_layers == kHeap; }
const char* stats_target() { return g_stats.text; }
const char* doctor_target() { return g_doctor.text; }

void describe(Json& json) {
  constexpr const char* kPlaces[] = {"anywhere", "low", "image", "address"};
  constexpr const char* kHugePages[] = {"none", "dense", "all"};
  json.number("decay_ms", idle::decay_ms());
  Text limit;
  limit_option::describe(limit::rule(), limit);
  json.string("limit", limit.data());
  json.string("huge_pages", kHugePages[static_cast<int>(g_realm.huge_pages())]);
  json.boolean("verbose", g_verbose);
  json.string("stats", g_stats.text);
  json.number("window", g_realm.window().size);
  json.string("window_at", kPlaces[static_cast<int>(g_realm.window().place)]);
  json.string("misuse_json", g_misuse_json.text);
  if constexpr (!kHardened) {
    json.number("sample_guard", guards::every());
    json.string("profile", profiling::target());
    json.number("profile_rate", profiling::every());
    json.number("profile_signal", profiling::signal());
  }
  if constexpr (kHardened) {
    json.string("misuse", hardened::g_goes_on.load(std::memory_order_relaxed) ? "report" : "end");
    json.boolean("strict", hardened::g_strict.load(std::memory_order_relaxed));
    json.number("quarantine", hardened::g_quarantine.load(std::memory_order_relaxed));
    json.string("memory_tags", platform::has_tags() ? kTagChecks[g_tag_checks] : "off");
  }
}

}  // namespace rh::options
