#include "imports.h"

// Of ntdll.
extern "C" {
__declspec(dllimport) LONG NTAPI NtMapViewOfSection(HANDLE section, HANDLE process, void** at, ULONG_PTR zero_bits,
                                                    SIZE_T commit, LARGE_INTEGER* offset, SIZE_T* size, DWORD inherited,
                                                    ULONG type, ULONG protection);
__declspec(dllimport) LONG NTAPI NtUnmapViewOfSection(HANDLE process, void* at);
}

namespace rh::inject {

const char kMark[] = "reheap imports2";

namespace {

constexpr uintptr_t kGranule = 64 << 10;  // what address space is given out in

// How far above the image the block may end: offsets have 32 bits, and a 32-bit process 2 GiB for sure.
uint64_t reach_of(const pe::Image& image) {
  const uint64_t two_gib = uint64_t{2} << 30;
  return image.wide ? 2 * two_gib : two_gib - image.base;
}

constexpr size_t kLongestName = 520;

// Begins an allocation of its own; the same for 32-bit and 64-bit processes.
struct Block {
  char mark[sizeof kMark];
  Settings settings;
  uint32_t arrived;
  uint32_t descriptor_count;
  IMAGE_DATA_DIRECTORY before[kChangedCount];
  ImportTable lookup;  // our one import
  ImportTable table;   // the same, where the loader writes the address
  char name[kLongestName];
  IMAGE_IMPORT_DESCRIPTOR descriptors[1];  // ours, those of the image, and the end
};

// Once receive() has found it.
constinit Block* g_block = nullptr;

struct Writer {
  HANDLE process;

  bool write(uintptr_t to, const void* from, size_t length) const {
    SIZE_T done = 0;
    return WriteProcessMemory(process, reinterpret_cast<void*>(to), from, length, &done) && done == length;
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

bool is_writable(const pe::Image& image, DWORD offset) {
  MEMORY_BASIC_INFORMATION region;
  constexpr DWORD writable = PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
  return VirtualQueryEx(image.process, reinterpret_cast<void*>(image.base + offset), &region, sizeof region) != 0 &&
         (region.Protect & writable) != 0;
}

bool allocate_at(HANDLE process, uintptr_t at, size_t length, HANDLE section) {
  void* place = reinterpret_cast<void*>(at);
  if (section == nullptr)
    return VirtualAllocEx(process, place, length, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) != nullptr;
  constexpr DWORD view_unmap = 2;  // not for the processes that this one makes
  SIZE_T size = length;
  return NtMapViewOfSection(section, process, &place, 0, 0, nullptr, &size, view_unmap, 0, PAGE_READWRITE) == 0;
}

void release(HANDLE process, uintptr_t at, HANDLE section) {
  void* const place = reinterpret_cast<void*>(at);
  if (section == nullptr)
    VirtualFreeEx(process, place, 0, MEM_RELEASE);
  else
    NtUnmapViewOfSection(process, place);
}

// The first free place above the image: offsets within it are unsigned and of 32 bits.
uintptr_t allocate_above(const pe::Image& image, size_t length, HANDLE section) {
  const uint64_t reach = reach_of(image);
  uintptr_t at = (image.base + image.size + kGranule - 1) & ~(kGranule - 1);
  MEMORY_BASIC_INFORMATION region;
  while (at > image.base && at - image.base + uint64_t{length} < reach &&
         VirtualQueryEx(image.process, reinterpret_cast<void*>(at), &region, sizeof region) != 0) {
    const uintptr_t end = reinterpret_cast<uintptr_t>(region.BaseAddress) + region.RegionSize;
    if (region.State == MEM_FREE && end - at >= length && allocate_at(image.process, at, length, section)) return at;
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

Block make_block(const pe::Image& image, DWORD offset, const Settings& settings, DWORD count) {
  Block block = {};
  for (size_t at = 0; at < sizeof kMark; ++at) block.mark[at] = kMark[at];
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
bool copy_descriptors(const pe::Image& image, const Writer& writer, uintptr_t block) {
  uintptr_t to = block + offsetof(Block, descriptors);
  return each_import(image, [&](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    to += sizeof descriptor;
    return writer.write(to, &descriptor, sizeof descriptor);
  });
}

bool lead_to(const pe::Image& image, const Writer& writer, DWORD offset, const Block& block) {
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

Obstacle fill(const pe::Image& image, uintptr_t address, DWORD count, const char* library, const Settings& settings) {
  const Writer writer = {image.process};
  const DWORD offset = static_cast<DWORD>(address - image.base);
  Block block = make_block(image, offset, settings, count);
  if (!put_name(block, library)) return Obstacle::path_not_ascii;
  const bool written = writer.write(address, &block, sizeof block) && copy_descriptors(image, writer, address) &&
                       lead_to(image, writer, offset, block);
  return written ? Obstacle::none : Obstacle::not_writable;
}

// Where the image's headers lead to a block of ours; 0 when they do not.
uintptr_t find_block(const pe::Image& image) {
  const DWORD offset = image.directory(IMAGE_DIRECTORY_ENTRY_IMPORT).VirtualAddress;
  if (offset < image.size) return 0;  // the image's own list, or none
  const uintptr_t list = image.base + offset;
  MEMORY_BASIC_INFORMATION region;
  if (VirtualQueryEx(image.process, reinterpret_cast<const void*>(list), &region, sizeof region) == 0) return 0;
  const auto block = reinterpret_cast<uintptr_t>(region.AllocationBase);
  char mark[sizeof kMark];
  if (list != block + offsetof(Block, descriptors) || !image.read_at(block, mark, sizeof mark)) return 0;
  for (size_t at = 0; at < sizeof kMark; ++at)
    if (mark[at] != kMark[at]) return 0;
  return block;
}

void restore_directories(const pe::Image& image, uintptr_t block) {
  const Writer writer = {image.process};
  decltype(Block::before) before;
  if (!image.read_at(block + offsetof(Block, before), before, sizeof before)) return;
  for (size_t at = 0; at < kChangedCount; ++at)
    if (kChanged[at] < image.directory_count)
      writer.overwrite(image.directories + kChanged[at] * sizeof(IMAGE_DATA_DIRECTORY), &before[at], sizeof before[at]);
}

bool own_image(pe::Image& image) {
  return image_at(GetCurrentProcess(), reinterpret_cast<uintptr_t>(GetModuleHandleW(nullptr)), image);
}

}  // namespace

void put_first_ordinal(bool wide, ImportTable& table) {
  // The low half comes first: of 32 bits, they are one entry and the end.
  table[0] = (wide ? IMAGE_ORDINAL_FLAG64 : IMAGE_ORDINAL_FLAG32) | 1;
  table[1] = 0;
}

void lead_directories(IMAGE_DATA_DIRECTORY* directories, DWORD count, const ImportList& list) {
  directories[IMAGE_DIRECTORY_ENTRY_IMPORT] = {list.descriptors,
                                               (list.imports + 1) * DWORD{sizeof(IMAGE_IMPORT_DESCRIPTOR)}};
  if (count > IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT) directories[IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT] = {0, 0};
  if (count > IMAGE_DIRECTORY_ENTRY_IAT && directories[IMAGE_DIRECTORY_ENTRY_IAT].VirtualAddress == 0)
    directories[IMAGE_DIRECTORY_ENTRY_IAT] = {list.table, sizeof(ImportTable)};
}

Obstacle add_import(const pe::Image& image, const char* library, const Settings& settings, HANDLE section) {
  DWORD count = 0;
  const auto writable = [&image](DWORD offset) { return is_writable(image, offset); };
  if (const Obstacle found = examine_imports(image, writable, count); found != Obstacle::none) return found;
  const size_t length = sizeof(Block) + (count + 1) * sizeof(IMAGE_IMPORT_DESCRIPTOR);
  if (section != nullptr && length > kSectionSize) return Obstacle::no_room;
  const uintptr_t address = allocate_above(image, length, section);
  if (address == 0) return Obstacle::no_room;
  const Obstacle result = fill(image, address, count, library, settings);
  if (result != Obstacle::none) release(image.process, address, section);
  return result;
}

void take_import_back(const pe::Image& image) {
  if (const uintptr_t block = find_block(image); block != 0) restore_directories(image, block);
}

bool receive(Settings& settings) {
  pe::Image image;
  if (!own_image(image)) return false;
  const uintptr_t block = find_block(image);
  if (block == 0) return false;
  restore_directories(image, block);
  g_block = reinterpret_cast<Block*>(block);
  settings = g_block->settings;
  if (settings.rehearses != 0) TerminateProcess(GetCurrentProcess(), kRehearsed);
  return true;
}

void arrive() {
  if (g_block == nullptr || g_block->settings.awaited == 0) return;
  SetErrorMode(g_block->settings.error_mode);
  __atomic_store_n(&g_block->arrived, 1, __ATOMIC_RELEASE);
}

bool has_arrived(const void* section) {
  const auto* block = static_cast<const Block*>(section);
  if (block->settings.awaited != 0) return __atomic_load_n(&block->arrived, __ATOMIC_ACQUIRE) != 0;
  return __atomic_load_n(&block->table[0], __ATOMIC_ACQUIRE) != block->lookup[0];
}

}  // namespace rh::inject
