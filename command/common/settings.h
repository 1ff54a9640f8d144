// The library's options as the command takes them, and the environment they become.
#pragma once

#include "refusal.h"
#include "text.h"

#include <cstdint>

namespace rh::command {

// What an option is given.
enum class Value : std::uint8_t { none, optional, required };

struct LibraryOption {
  Str name;              // "--decay-ms"
  const char* variable;  // "REHEAP_DECAY_MS"
  Value value;
  const char* allowed;  // the form of its value
  const char* description;
};

// All of them, as docs/options.md lists them.
inline constexpr LibraryOption library_options[] = {
    {"--stats", "REHEAP_STATS", Value::optional, "FILE",
     "Statistics in JSON at exit: to FILE (--stats=FILE), or to stderr"},
    {"--verbose", "REHEAP_VERBOSE", Value::none, "",
     "One line at start (who serves malloc, options in force), and warnings"},
    {"--decay-ms", "REHEAP_DECAY_MS", Value::required, "0..600000",
     "How long free memory stays warm before it returns to the OS"},
    {"--limit", "REHEAP_LIMIT", Value::required, "off|auto|[soft:]SIZE|N%[,end]",
     "How much memory the heap may hold; beyond it the program is refused more"},
    {"--huge-pages", "REHEAP_HUGE_PAGES", Value::none, "",
     "Linux is asked for huge pages for the heap's memory: fewer page faults, more memory"},
    {"--window", "REHEAP_WINDOW", Value::required, "16M..64T", "At most so much address space for the heap"},
    {"--window-at", "REHEAP_WINDOW_AT", Value::required, "low|image|0xADDR", "Where that address space lies"},
    {"--misuse-json", "REHEAP_MISUSE_JSON", Value::required, "FILE",
     "Misuse of memory that is seen is also added to FILE, an object in JSON on a line"},
    {"--sample-guard", "REHEAP_SAMPLE_GUARD", Value::required, "0..1000000000",
     "One allocation in so many gets pages of its own: what the program does wrong with it is reported"},
    {"--profile", "REHEAP_PROFILE", Value::required, "FILE",
     "At exit, which stacks allocated how much of what is live: to FILE, for pprof"},
    {"--profile-rate", "REHEAP_PROFILE_RATE", Value::required, "1..1T", "One byte in so many is sampled for that"},
    {"--profile-signal", "REHEAP_PROFILE_SIGNAL", Value::required, "N",
     "That begins, and ends, when this signal arrives"},
    {"--misuse", "REHEAP_MISUSE", Value::required, "end|report",
     "With --hardened: end a program that misuses memory, or only say so"},
    {"--strict", "REHEAP_STRICT", Value::none, "",
     "With --hardened: free of what new made, and delete of what malloc made, end the program"},
    {"--quarantine", "REHEAP_QUARANTINE", Value::required, "1..256",
     "With --hardened: how many freed blocks of up to 1 KiB a thread keeps from being used again"},
    {"--memory-tags", "REHEAP_MEMORY_TAGS", Value::required, "sync|async|off",
     "With --hardened, on arm64: how wrong accesses are told where memory has tags"},
};
inline constexpr std::size_t library_option_count = sizeof library_options / sizeof library_options[0];

// The options of `reheap run` that are not the library's.
inline constexpr const char* require_flag = "--require";
inline constexpr const char* quiet_flag = "--quiet";
inline constexpr const char* library_option = "--library";
inline constexpr const char* hardened_flag = "--hardened";

struct Settings {
  const char* library = nullptr;        // --library
  bool hardened = false;                // --hardened: the build that looks for misuse
  Str variables[library_option_count];  // "NAME=VALUE", empty for an option that was not given
};

// Whether its value is a file's path, which is taken from where the command is given.
inline bool names_file(const LibraryOption& option) { return Str(option.allowed) == "FILE"; }

// Whether a value means no file, or is none: the library is told it as it is.
bool is_switch(Str value);

// Whether the option allows a value, which ends with a zero: else the program is not started. What a library or a
// machine cannot do, the library says.
bool well_formed(const LibraryOption& option, Str value);
const char* allowed_values(const LibraryOption& option);  // in words

// `value` is empty when none was given. Refuses a file that is named from a working folder which is gone.
Refusal set(Settings& settings, const LibraryOption& option, Str value);

// The value of a variable of an environment, or nullptr.
const char* value_of(char* const* environment, Str name);

// `environment` with the library before what LD_PRELOAD names already, and with the settings.
char* const* with_library(char* const* environment, Str library, const Settings& settings);

}  // namespace rh::command
