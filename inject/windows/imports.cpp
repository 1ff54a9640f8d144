#include "imports.h"

namespace rh::inject {
namespace {

constexpr uintptr_t kGranule = 64 << 10;  // what address space is given out in

// How far above the image the block may end: offsets have 32 bits, and a 32-bit process 2 GiB for sure.
uint64_t reach_of(const Image& image) {
  const uint64_t two_gib = uint64_t{2} << 30;
  return image.wide ? 2 * two_gib : two_gib - image.base;
}

constexpr size_t kLongestName = 520;

// Begins an allocation of its own; the same for 32-bit and 64-bit processes.
struct Block {
  char magic[16];
  Settings settings;
  uint32_t descriptor_count;
  IMAGE_DATA_DIRECTORY before[kChangedCount];
  ImportTable lookup;  // our one import
  ImportTable table;   // the same, where the loader writes the address
  char name[kLongestName];
  IMAGE_IMPORT_DESCRIPTOR descriptors[1];  // ours, those of the image, and the end
};
constexpr char kMagic[sizeof Block{}.magic] = "reheap imports1";

struct Writer {
  HANDLE process;

  bool write(uintptr_t to, const void* from, size_t length) const {
    SIZE_T done = 0;
    return WriteProcessMemory(process, reinterpret_cast<void*>(to), from, length, &done) &&
           done == length;
  }

  // Over memory that is not writable, whose protection comes back.
  bool overwrite(uintptr_t to, const void* from, size_t length) const {
    void* const address = reinterpret_cast<void*>(to);
    DWORD before = 0;
    if (!VirtualProtectEx(process, address, length, PAGE_READWRITE, &before)) return false;
    const bool written = write(to, from, length);
    DWORD ignored = 0;
    return VirtualProtectEx(process, address, length, before, &ignored) && written;
  }
};

bool is_writable(const Image& image, DWORD offset) {
  MEMORY_BASIC_INFORMATION region;
  constexpr DWORD writable =
      PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
  return VirtualQueryEx(image.process, reinterpret_cast<void*>(image.base + offset), &region,
                        sizeof region) != 0 &&
         (region.Protect & writable) != 0;
}

// The first free place above the image: offsets within it are unsigned and of 32 bits.
uintptr_t allocate_above(const Image& image, size_t length) {
  const uint64_t reach = reach_of(image);
  uintptr_t at = (image.base + image.size + kGranule - 1) & ~(kGranule - 1);
  MEMORY_BASIC_INFORMATION region;
  while (at > image.base && at - image.base + uint64_t{length} < reach &&
         VirtualQueryEx(image.process, reinterpret_cast<void*>(at), &region, sizeof region) != 0) {
    const uintptr_t end = reinterpret_cast<uintptr_t>(region.BaseAddress) + region.RegionSize;
    if (region.State == MEM_FREE && end - at >= length &&
        VirtualAllocEx(image.process, reinterpret_cast<void*>(at), length, MEM_RESERVE | MEM_COMMIT,
                       PAGE_READWRITE) != nullptr)
      return at;
    at = (end + kGranule - 1) & ~(kGranule - 1);
  }
  return 0;
}

bool put_name(Block& block, const char* library) {
  for (size_t at = 0; at < kLongestName; ++at) {
    block.name[at] = library[at];
    if (library[at] == 0) return true;
  }
  return false;
}

Block make_block(const Image& image, DWORD offset, const Settings& settings, DWORD count) {
  Block block = {};
  for (size_t at = 0; at < sizeof kMagic; ++at) block.magic[at] = kMagic[at];
  block.settings = settings;
  block.descriptor_count = count;
  for (size_t at = 0; at < kChangedCount; ++at) block.before[at] = image.directory(kChanged[at]);
  put_first_ordinal(image.wide, block.lookup);
  put_first_ordinal(image.wide, block.table);
  block.descriptors[0].OriginalFirstThunk = offset + DWORD{offsetof(Block, lookup)};
  block.descriptors[0].FirstThunk = offset + DWORD{offsetof(Block, table)};
  block.descriptors[0].Name = offset + DWORD{offsetof(Block, name)};
  return block;
}

// The image's own descriptors behind ours. The end is there already: fresh memory is zero.
bool copy_descriptors(const Image& image, const Writer& writer, uintptr_t block) {
  uintptr_t to = block + offsetof(Block, descriptors);
  return each_import(image, [&](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    to += sizeof descriptor;
    return writer.write(to, &descriptor, sizeof descriptor);
  });
}

bool lead_to(const Image& image, const Writer& writer, DWORD offset, const Block& block) {
  IMAGE_DATA_DIRECTORY directories[IMAGE_NUMBEROF_DIRECTORY_ENTRIES];
  const DWORD count = image.directory_count < IMAGE_NUMBEROF_DIRECTORY_ENTRIES
                          ? image.directory_count
                          : DWORD{IMAGE_NUMBEROF_DIRECTORY_ENTRIES};
  const size_t length = count * sizeof directories[0];
  if (!image.read_at(image.directories, directories, length)) return false;
  lead_directories(directories, count,
                   {offset + DWORD{offsetof(Block, descriptors)}, block.descriptor_count + 1,
                    offset + DWORD{offsetof(Block, table)}});
  return writer.overwrite(image.directories, directories, length);
}

Obstacle fill(const Image& image, uintptr_t address, DWORD count, const char* library,
              const Settings& settings) {
  const Writer writer = {image.process};
  const DWORD offset = static_cast<DWORD>(address - image.base);
  Block block = make_block(image, offset, settings, count);
  if (!put_name(block, library)) return Obstacle::path_not_ascii;
  const bool written = writer.write(address, &block, sizeof block) &&
                       copy_descriptors(image, writer, address) &&
                       lead_to(image, writer, offset, block);
  return written ? Obstacle::none : Obstacle::not_writable;
}

// Where the image's headers lead to a block of ours; 0 when they do not.
uintptr_t find_block(const Image& image) {
  const DWORD offset = image.directory(IMAGE_DIRECTORY_ENTRY_IMPORT).VirtualAddress;
  if (offset < image.size) return 0;  // the image's own list, or none
  const uintptr_t list = image.base + offset;
  MEMORY_BASIC_INFORMATION region;
  if (VirtualQueryEx(image.process, reinterpret_cast<const void*>(list), &region, sizeof region) ==
      0)
    return 0;
  const auto block = reinterpret_cast<uintptr_t>(region.AllocationBase);
  char magic[sizeof kMagic];
  if (list != block + offsetof(Block, descriptors) || !image.read_at(block, magic, sizeof magic))
    return 0;
  for (size_t at = 0; at < sizeof kMagic; ++at)
    if (magic[at] != kMagic[at]) return 0;
  return block;
}

void restore_directories(const Image& image, const Block& block) {
  const Writer writer = {GetCurrentProcess()};
  for (size_t at = 0; at < kChangedCount; ++at)
    if (kChanged[at] < image.directory_count)
      writer.overwrite(image.directories + kChanged[at] * sizeof(IMAGE_DATA_DIRECTORY),
                       &block.before[at], sizeof block.before[at]);
}

bool own_image(Image& image) {
  return image_at(GetCurrentProcess(), reinterpret_cast<uintptr_t>(GetModuleHandleW(nullptr)),
                  image);
}

}  // namespace

void put_first_ordinal(bool wide, ImportTable& table) {
  // The low half comes first: of 32 bits, they are one entry and the end.
  table[0] = (wide ? IMAGE_ORDINAL_FLAG64 : IMAGE_ORDINAL_FLAG32) | 1;
  table[1] = 0;
}

void lead_directories(IMAGE_DATA_DIRECTORY* directories, DWORD count, const ImportList& list) {
  directories[IMAGE_DIRECTORY_ENTRY_IMPORT] = {
      list.descriptors, (list.imports + 1) * DWORD{sizeof(IMAGE_IMPORT_DESCRIPTOR)}};
  if (count > IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT)
    directories[IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT] = {0, 0};
  if (count > IMAGE_DIRECTORY_ENTRY_IAT &&
      directories[IMAGE_DIRECTORY_ENTRY_IAT].VirtualAddress == 0)
    directories[IMAGE_DIRECTORY_ENTRY_IAT] = {list.table, sizeof(ImportTable)};
}

Obstacle add_import(const Image& image, const char* library, const Settings& settings) {
  // A launcher that was followed itself starts a program: it is done already.
  if (find_block(image) != 0) return Obstacle::none;
  DWORD count = 0;
  const auto writable = [&image](DWORD offset) { return is_writable(image, offset); };
  if (const Obstacle found = examine_imports(image, writable, count); found != Obstacle::none)
    return found;
  const size_t length = sizeof(Block) + (count + 1) * sizeof(IMAGE_IMPORT_DESCRIPTOR);
  const uintptr_t address = allocate_above(image, length);
  if (address == 0) return Obstacle::no_room;
  const Obstacle result = fill(image, address, count, library, settings);
  if (result != Obstacle::none)
    VirtualFreeEx(image.process, reinterpret_cast<void*>(address), 0, MEM_RELEASE);
  return result;
}

bool receive(Settings& settings) {
  Image image;
  if (!own_image(image)) return false;
  const auto* block = reinterpret_cast<const Block*>(find_block(image));
  if (block == nullptr) return false;
  settings = block->settings;
  restore_directories(image, *block);
  return true;
}

}  // namespace rh::inject
