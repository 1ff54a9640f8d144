// Strings for the part of the command that runs before the C and C++ libraries are set up.
//
// Nothing in linux/early/ may call into them: not even memcpy, which in a static program is an indirect
// function that nobody has resolved yet. tests/command/linux proves it from the object files.
#pragma once

#include <cstddef>
#include <initializer_list>

namespace rh::command {

// Characters somebody else keeps.
struct Str {
  const char* data = "";
  std::size_t size = 0;

  constexpr Str() = default;
  constexpr Str(const char* characters, std::size_t length) : data(characters), size(length) {}
  constexpr Str(const char* terminated) : data(terminated) {
    while (data[size] != '\0') ++size;
  }

  constexpr bool empty() const { return size == 0; }
  constexpr char front() const { return data[0]; }
  constexpr char back() const { return data[size - 1]; }

  // The characters from `begin` on, `length` of them or as many as there are.
  constexpr Str part(std::size_t begin, std::size_t length = static_cast<std::size_t>(-1)) const {
    if (begin > size) begin = size;
    return {data + begin, length < size - begin ? length : size - begin};
  }

  constexpr bool operator==(const Str& other) const {
    if (size != other.size) return false;
    for (std::size_t at = 0; at < size; ++at)
      if (data[at] != other.data[at]) return false;
    return true;
  }

  constexpr bool starts_with(Str start) const { return part(0, start.size) == start; }
  constexpr bool holds(char character) const { return find(character) < size; }

  // Where the first of `characters` stands; size when none does.
  constexpr std::size_t find_any(Str characters) const {
    for (std::size_t at = 0; at < size; ++at)
      for (std::size_t of = 0; of < characters.size; ++of)
        if (data[at] == characters.data[of]) return at;
    return size;
  }
  constexpr std::size_t find(char character) const { return find_any({&character, 1}); }

  // Whether there are characters, and only such.
  constexpr bool only(Str characters) const {
    for (std::size_t at = 0; at < size; ++at)
      if (!characters.holds(data[at])) return false;
    return size > 0;
  }

  constexpr Str trimmed(Str of) const {
    Str rest = *this;
    while (!rest.empty() && of.holds(rest.front())) rest = rest.part(1);
    while (!rest.empty() && of.holds(rest.back())) rest.size -= 1;
    return rest;
  }

  // What stands behind the last slash, and what stands before it.
  constexpr Str base_name() const { return part(slash() == size ? 0 : slash() + 1); }
  constexpr Str directory() const { return part(0, slash() == size ? 0 : slash()); }

 private:
  constexpr std::size_t slash() const {
    for (std::size_t at = size; at-- > 0;)
      if (data[at] == '/') return at;
    return size;
  }
};

// Memory that is never given back: the process soon becomes another program, or ends.
// nullptr when the system has none.
void* keep(std::size_t size);

// One string of all, kept, with a terminating zero behind it.
Str join(std::initializer_list<Str> parts);

Str decimal(unsigned long number);

}  // namespace rh::command
