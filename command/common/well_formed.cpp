#include "settings.h"

#include "entry/limit_option.h"

namespace rh::command {
namespace {

constexpr Str decimal_digits = "0123456789";
constexpr Str hexadecimal_digits = "0123456789abcdefABCDEF";

bool is_size(Str text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t size = 0;
  const char* end = nullptr;
  return parse_size(text.data, &size, &end) && *end == 0 && size >= least && size <= most;
}

bool is_number(Str text, unsigned long most) {
  constexpr std::size_t most_digits = 10;
  if (!text.only(decimal_digits) || text.size > most_digits) return false;
  unsigned long long number = 0;
  for (std::size_t at = 0; at < text.size; ++at) number = number * 10 + static_cast<unsigned>(text.data[at] - '0');
  return number <= most;
}

bool is_limit(Str text) {
  limit::Rule rule;
  return limit_option::parse(text.data, &rule);
}

// "0x", and a multiple of 16 KiB that is not 0: the lowest fourteen bits are three digits and half of the fourth.
bool is_address(Str text) {
  const Str digits = text.part(2);
  if (!text.starts_with("0x") || !digits.only(hexadecimal_digits)) return false;
  const Str significant = digits.trimmed("0");
  if (significant.empty()) return false;
  constexpr std::size_t whole_digits = 3;
  const std::size_t behind = static_cast<std::size_t>(digits.data + digits.size - significant.data) - significant.size;
  return behind > whole_digits || (behind == whole_digits && Str("48cC").holds(significant.back()));
}

bool is_place(Str text) { return text == "low" || text == "image" || is_address(text); }

bool is_word(Str text, Str word) {
  if (text.size != word.size) return false;
  for (std::size_t at = 0; at < text.size; ++at) {
    const char letter = text.data[at];
    if ((letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter) != word.data[at]) return false;
  }
  return true;
}

// Not the words that may mean a file as well as none or some, but for the one by which --stats writes to stderr.
bool is_file(const LibraryOption& option, Str text) {
  if (option.value == Value::optional && text == "1") return true;
  return !is_switch(text) || is_word(text, "0") || is_word(text, "off");
}

bool is_memory_tags(Str text) { return text == "sync" || text == "async" || text == "off"; }

bool is_layers(Str text) { return text == "both" || text == "crt" || text == "heap" || text == "none"; }

}  // namespace

bool is_switch(Str value) {
  for (const char* word : {"0", "1", "on", "off", "yes", "no", "true", "false"})
    if (is_word(value, word)) return true;
  return false;
}

bool well_formed(const LibraryOption& option, Str value) {
  if (names_file(option)) return is_file(option, value);
  if (option.name == "--decay-ms") return is_number(value, 600000);
  if (option.name == "--sample-guard") return is_number(value, 1000000000);
  if (option.name == "--profile-rate") return is_size(value, 1, std::uint64_t{1} << 40);
  if (option.name == "--profile-signal") return is_number(value, 64);
  if (option.name == "--limit") return is_limit(value);
  if (option.name == "--window") return is_size(value, std::uint64_t{16} << 20, std::uint64_t{64} << 40);
  if (option.name == "--window-at") return is_place(value);
  if (option.name == "--layers") return is_layers(value);
  if (option.name == "--quarantine") return is_number(value, 256) && value != "0";
  if (option.name == "--memory-tags") return is_memory_tags(value);
  if (option.name == "--misuse") return value == "end" || value == "report";
  return true;
}

const char* allowed_values(const LibraryOption& option) {
  if (names_file(option)) return "a file's path, or 0 or off for none (./yes is a file of that name)";
  if (option.name == "--window-at") return "low|image|0xADDR, a multiple of 16 KiB";
  return option.name == "--limit" ? limit_option::kAllowed : option.allowed;
}

}  // namespace rh::command
