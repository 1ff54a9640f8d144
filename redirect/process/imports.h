// Making a DLL the first import of a process that has not run yet.
#pragma once

#include "outcome.h"
#include "redirect/pe/image.h"

namespace rh::inject {

// The parts of it that a file is given as well (command/windows/patch.h).

// Whether the image's imports can all be followed by way of another list, and how many there are.
// is_writable(offset): whether the loader finds that place writable.
template <class IsWritable> Obstacle examine_imports(const pe::Image& image, IsWritable is_writable, DWORD& count) {
  if (image.directory_count <= IMAGE_DIRECTORY_ENTRY_IMPORT) return Obstacle::no_import_directory;
  const bool has_tables = image.has_directory(IMAGE_DIRECTORY_ENTRY_IAT);
  Obstacle found = Obstacle::none;
  count = 0;
  const bool read = each_import(image, [&](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    ++count;
    // Bound in advance, without the names that it was bound from.
    if (descriptor.OriginalFirstThunk == 0 && descriptor.TimeDateStamp != 0) found = Obstacle::fixed_tables;
    // Without that directory the loader would look for the tables in the section of the first descriptor's, now ours.
    if (!has_tables && !is_writable(descriptor.FirstThunk)) found = Obstacle::fixed_tables;
    return found == Obstacle::none;
  });
  return read ? found : Obstacle::unreadable;
}

// An import table with ordinal 1 alone, and its end.
using ImportTable = uint64_t[2];
void put_first_ordinal(bool wide, ImportTable& table);

// The directories that change.
constexpr DWORD kChanged[] = {IMAGE_DIRECTORY_ENTRY_IMPORT, IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT,
                              IMAGE_DIRECTORY_ENTRY_IAT};
constexpr size_t kChangedCount = sizeof kChanged / sizeof kChanged[0];

// Leads them to a list of `imports` descriptors and their end, and to its first one's table where there is no other.
struct ImportList {
  DWORD descriptors;
  DWORD imports;
  DWORD table;
};
void lead_directories(IMAGE_DATA_DIRECTORY* directories, DWORD count, const ImportList& list);

// What the DLL is told. It stands in the block that is written for it, so that no variable of the environment is
// needed.
enum class WhenLeft : uint32_t { nothing, tell, refuse };
struct Settings {
  uint32_t follow_children = 0;
  WhenLeft when_left = WhenLeft::nothing;  // what to do where something could not be replaced
  uint32_t rehearses = 0;                  // the process is to show that the library loads, and ends then
  uint32_t error_mode = 0;                 // SetErrorMode's, which was the process's
  uint32_t awaited = 0;                    // until arrive() the error mode is another; enter() knows (inject.h)
};

// How a process ends that was refused so: as the launcher does.
constexpr int kRefused = 125;

// How one ends in which the library was to load, and did.
constexpr DWORD kRehearsed = 0x5248'6f6b;

// Writes a block into the process, within 4 GiB above the image, with a list of imports in which `library` (its ordinal
// 1) comes before all others, and leads the image's headers to it. `library`: a full path in ASCII. The block lies in
// `section`, of kSectionSize bytes, if there is one.
Obstacle add_import(const pe::Image& image, const char* library, const Settings& settings, HANDLE section);

// Puts the headers back as they were when somebody else has made an import of a library: of two that start a process
// together, the later one's wishes hold.
void take_import_back(const pe::Image& image);

// In the process itself, once the loader has followed the imports: takes what came with the import and puts the headers
// back as they were. The block stays. False when the DLL was brought in by other means. Does not return in a rehearsal.
bool receive(Settings& settings);

// Tells whoever waits for it that the library is in, and has nothing left to do that could fail.
void arrive();

// What add_import writes can lie in a section that the launcher has mapped too, so that it sees how far things came
// also when the process has ended.
constexpr size_t kSectionSize = 64 << 10;

// Whether the library has arrived; or, of one that does not call arrive(), whether the loader has found what it
// exports.
bool has_arrived(const void* section);

// Stands in the file of every library that calls receive() and arrive().
extern const char kMark[16];

}  // namespace rh::inject
