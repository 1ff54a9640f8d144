#include "outcome.h"

namespace rh::inject {
namespace {

constexpr const char* kTexts[] = {
    "nothing is in the entry",
    "its memory cannot be read",
    "its memory cannot be written",
    "there is no free address space above its image",
    "its headers have no room for imports",
    "its import tables are fixed",
    "the library's path has characters outside ASCII, and no short name",
    "it is a .NET program, whose objects lie in the runtime's own heap",
    "it is a Go program, which takes its memory from the OS itself: nothing to gain",
    "it is a Cygwin program, whose malloc lies in Cygwin's DLL, and whose fork needs places that might be taken",
    "its policy admits only signed libraries",
    "its policy admits only libraries with a table for control-flow guard",
    "its policy admits only libraries made for shadow stacks",
    "its policy admits no libraries from another machine",
    "its policy forbids new code, and so to replace functions",
    "there is no reheap.dll for its architecture",
    "there is no reheap.exe for its architecture, which would have to do this",
    "the reheap.exe for its architecture failed",
    "the reheap.dll for its architecture is damaged",
    "its loader failed before the library was in",
};
static_assert(sizeof kTexts / sizeof kTexts[0] == static_cast<size_t>(Obstacle::count));

// Told apart from the exit codes of a process that ended by itself.
constexpr DWORD kPacked = 0x5248'0000;
constexpr DWORD kPackedMask = 0xffff'0000;

}  // namespace

const char* text_of(Obstacle obstacle) { return kTexts[static_cast<size_t>(obstacle)]; }

DWORD pack(const Outcome& outcome) {
  return kPacked | static_cast<DWORD>(outcome.entry) << 8 | static_cast<DWORD>(outcome.obstacle);
}

Outcome unpack(DWORD packed) {
  Outcome outcome;
  const DWORD entry = packed >> 8 & 0xff, obstacle = packed & 0xff;
  if ((packed & kPackedMask) != kPacked || entry >= static_cast<DWORD>(Entry::count) ||
      obstacle >= static_cast<DWORD>(Obstacle::count)) {
    outcome.obstacle = Obstacle::helper_failed;
    outcome.error = packed;
    return outcome;
  }
  outcome.entry = static_cast<Entry>(entry);
  outcome.obstacle = static_cast<Obstacle>(obstacle);
  return outcome;
}

}  // namespace rh::inject
