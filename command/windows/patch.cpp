#include "patch.h"

#include "common/message.h"
#include "program_description.h"
#include "redirect/process/imports.h"
#include "redirect/process/kind.h"
#include "redirect/process/library.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rh::command {
namespace {

constexpr char kMagic[16] = "reheap patch1";
constexpr size_t kLongestName = 256;
// Places in it have 32 bits, and it is held several times.
constexpr uint64_t kLargestFile = uint64_t{1} << 30;
constexpr DWORD kLeastAlignment = 512;  // what the loader rounds places in a file to

// At the start of the section.
struct PatchBlock {
  char magic[sizeof kMagic];
  uint64_t file_size;  // before
  uint64_t file_hash;
  uint32_t headers_at;  // from here: the headers before
  uint32_t headers_size;
  inject::ImportTable lookup;  // our one import
  inject::ImportTable table;   // the same, where the loader writes the address
  char name[kLongestName];
  IMAGE_IMPORT_DESCRIPTOR descriptors[1];  // ours, the program's, and the end
};

template <class Value> void put(std::string& bytes, uint64_t at, const Value& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class Value> Value get(const std::string& bytes, uint64_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// FNV-1a: against changes, not against forgers.
uint64_t hash(const std::string& bytes) {
  uint64_t value = 0xcbf29ce484222325;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return value;
}

// ---- what keeps a file from being patched ---------------------------------------------------------

// A program may say in which folders its imports are looked for; ours would lie beside it.
bool looks_beside_itself(const ProgramFile& file) {
  constexpr WORD beside = LOAD_LIBRARY_SEARCH_APPLICATION_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
  const DWORD at = file.image().wide ? 78 : 54;  // IMAGE_LOAD_CONFIG_DIRECTORY's DependentLoadFlags
  const DWORD begin = file.image().directory(IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG).VirtualAddress;
  DWORD size = 0;
  WORD flags = 0;
  return begin == 0 || !file.image().read(begin, &size, sizeof size) || size < at + sizeof flags ||
         !file.image().read(begin + at, &flags, sizeof flags) || flags == 0 || (flags & beside) != 0;
}

bool is_for_people(const ProgramFile& file) {
  const WORD subsystem = file.optional_header().Subsystem;
  return subsystem == IMAGE_SUBSYSTEM_WINDOWS_GUI || subsystem == IMAGE_SUBSYSTEM_WINDOWS_CUI;
}

bool is_known_machine(WORD machine) {
  return machine == IMAGE_FILE_MACHINE_AMD64 || machine == IMAGE_FILE_MACHINE_I386 || machine == pe::machine_arm64;
}

// Behind the other section headers, before anything else. Bound imports may stand there: they are given up.
bool has_header_room(const ProgramFile& file) {
  const uint64_t begin = file.section_headers_end(), end = begin + sizeof(IMAGE_SECTION_HEADER);
  uint64_t limit = file.optional_header().SizeOfHeaders;
  for (const IMAGE_SECTION_HEADER& section : file.sections())
    if (data_of(section).size != 0) limit = std::min<uint64_t>(limit, section.PointerToRawData);
  if (end > limit) return false;
  const IMAGE_DATA_DIRECTORY bound = file.image().directory(IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT);
  for (uint64_t at = begin; at < end; ++at) {
    const bool is_bound = at >= bound.VirtualAddress && at - bound.VirtualAddress < bound.Size;
    if (file.bytes()[at] != 0 && !is_bound) return false;
  }
  return true;
}

inject::Obstacle examine(const ProgramFile& file, DWORD& count) {
  const auto writable = [&file](DWORD offset) {
    const IMAGE_SECTION_HEADER* section = file.section_at(offset);
    return section != nullptr && (section->Characteristics & IMAGE_SCN_MEM_WRITE) != 0;
  };
  return inject::examine_imports(file.image(), writable, count);
}

bool imports_library(const ProgramFile& file, const std::string& library) {
  bool found = false;
  pe::each_import(file.image(), [&](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    char name[kLongestName];
    found = file.image().read_text(descriptor.Name, name, sizeof name) && _stricmp(name, library.c_str()) == 0;
    return !found;
  });
  return found;
}

// Of the kind of program it is.
std::string unfit(const ProgramFile& file, const PatchRequest& request) {
  const bool library = (file.file_header().Characteristics & IMAGE_FILE_DLL) != 0;
  if (library && !request.allow_library) return "it is a DLL: patch the program that loads it, or give --allow-dll";
  if (!is_known_machine(file.image().machine))
    return "there is no reheap.dll for its architecture, " + architecture_name(file.image().machine);
  if (!is_for_people(file)) return "it is a driver, or of the system's own: such load no reheap.dll";
  if (inject::is_managed(file.image())) return text_of(inject::Obstacle::managed);
  if (inject::is_go(file.image()) && !inject::imports_allocation(file.image())) return text_of(inject::Obstacle::go);
  if (inject::is_cygwin(file.image())) return text_of(inject::Obstacle::cygwin);
  if (file.section(".reheap") != nullptr) return "it has reheap in it already";
  if (const std::string packer = packer_of(file.image()); !packer.empty())
    return "it is packed by " + packer + ": unpack it first, or use reheap run";
  return {};
}

// Of what its headers hold.
std::string unsafe(const ProgramFile& file, const PatchRequest& request) {
  if ((file.image().characteristics & IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY) != 0)
    return "Windows loads it only with the signature that it has: use reheap run";
  if (!looks_beside_itself(file)) return "it takes its libraries from the system's folder alone: use reheap run";
  DWORD count = 0;
  if (const inject::Obstacle found = examine(file, count); found != inject::Obstacle::none)
    return text_of(found) + std::string(": use reheap run");
  if (imports_library(file, request.library)) return "it imports " + request.library + " already";
  if (!has_header_room(file)) return "its headers have no room for a section: use reheap run";
  if (file.certificates().size != 0 && !request.allow_unsigned)
    return "it is signed, and would be no more: give --allow-unsigned, and sign it again";
  return {};
}

// Under a name without an ending the loader looks for another file than the one that was named.
bool is_library_name(const std::string& name) {
  constexpr std::string_view ending = ".dll", in_no_name = "\\/:*?\"<>|";
  const bool possible = std::all_of(name.begin(), name.end(), [in_no_name](char letter) {
    return letter > ' ' && letter <= '~' && in_no_name.find(letter) == in_no_name.npos;
  });
  return possible && name.size() > ending.size() && name.size() < kLongestName &&
         _stricmp(name.c_str() + name.size() - ending.size(), ending.data()) == 0;
}

void check_name(const std::string& library) {
  if (!is_library_name(library))
    throw Failure(exit_usage, "--dll takes the name of a DLL alone, in ASCII without blanks, as in other.dll");
}

// ---- patching -------------------------------------------------------------------------------------

// Behind the sections, up to the signature. Symbols do not count: they are found by their place alone.
std::string appended_data(const ProgramFile& file) {
  const Extent signature = file.certificates(), symbols = file.symbols();
  const uint64_t begin = file.sections_end();
  uint64_t end = file.bytes().size();
  if (signature.size != 0 && signature.begin >= begin && signature.end() >= end) end = std::min(end, signature.begin);
  for (uint64_t at = begin; at < end; ++at) {
    const bool is_symbol = at >= symbols.begin && at < symbols.end();
    if (file.bytes()[at] != 0 && !is_symbol) return file.bytes().substr(begin, end - begin);
  }
  return {};
}

class Patcher {
 public:
  Patcher(const ProgramFile& file, const std::string& library) : file_(file), library_(library) {
    const DWORD alignment = std::max(file.optional_header().FileAlignment, kLeastAlignment);
    begin_ = rounded_up(file.bytes().size(), alignment);
    address_ = static_cast<DWORD>(rounded_up(file.image().size, file.optional_header().SectionAlignment));
    make_content();
    const uint64_t size = content_.size();
    content_.resize(rounded_up(size, alignment));
    section_.Misc.VirtualSize = static_cast<DWORD>(size);
    section_.VirtualAddress = address_;
    section_.SizeOfRawData = static_cast<DWORD>(content_.size());
    section_.PointerToRawData = static_cast<DWORD>(begin_);
    section_.Characteristics = IMAGE_SCN_CNT_INITIALIZED_DATA | IMAGE_SCN_MEM_READ | IMAGE_SCN_MEM_WRITE;
    std::memcpy(section_.Name, kPatchSection, sizeof section_.Name);
  }

  Patched result() const {
    Patched result;
    result.bytes = file_.bytes();
    result.bytes.resize(begin_);
    result.bytes += content_;
    const std::string appended = appended_data(file_);
    result.bytes += appended;
    result.has_appended = !appended.empty();
    result.was_signed = file_.certificates().size != 0;
    change_headers(result.bytes);
    return result;
  }

 private:
  std::vector<IMAGE_IMPORT_DESCRIPTOR> descriptors() const {
    IMAGE_IMPORT_DESCRIPTOR ours = {};
    ours.OriginalFirstThunk = address_ + DWORD{offsetof(PatchBlock, lookup)};
    ours.FirstThunk = address_ + DWORD{offsetof(PatchBlock, table)};
    ours.Name = address_ + DWORD{offsetof(PatchBlock, name)};
    std::vector<IMAGE_IMPORT_DESCRIPTOR> list = {ours};
    pe::each_import(file_.image(), [&list](IMAGE_IMPORT_DESCRIPTOR descriptor) {
      // Not bound any more: the loader is to look its functions up.
      if (descriptor.TimeDateStamp != 0) descriptor.TimeDateStamp = descriptor.ForwarderChain = 0;
      list.push_back(descriptor);
      return true;
    });
    return list;
  }

  void make_content() {
    const std::vector<IMAGE_IMPORT_DESCRIPTOR> list = descriptors();
    imports_ = static_cast<DWORD>(list.size());
    const size_t list_size = (list.size() + 1) * sizeof list[0];
    PatchBlock block = {};
    std::memcpy(block.magic, kMagic, sizeof kMagic);
    block.file_size = file_.bytes().size();
    block.file_hash = hash(file_.bytes());
    block.headers_at = static_cast<uint32_t>(offsetof(PatchBlock, descriptors) + list_size);
    block.headers_size = file_.optional_header().SizeOfHeaders;
    inject::put_first_ordinal(file_.image().wide, block.lookup);
    inject::put_first_ordinal(file_.image().wide, block.table);
    library_.copy(block.name, kLongestName - 1);
    content_.assign(block.headers_at, '\0');
    std::memcpy(content_.data(), &block, sizeof block);
    std::memcpy(content_.data() + offsetof(PatchBlock, descriptors), list.data(), list.size() * sizeof list[0]);
    content_ += file_.bytes().substr(0, block.headers_size);
  }

  void change_directories(std::string& bytes) const {
    IMAGE_DATA_DIRECTORY directories[IMAGE_NUMBEROF_DIRECTORY_ENTRIES] = {};
    const DWORD count = file_.image().directory_count;
    char* const at = bytes.data() + file_.directories_at();
    std::memcpy(directories, at, count * sizeof directories[0]);
    inject::lead_directories(
        directories, count,
        {address_ + DWORD{offsetof(PatchBlock, descriptors)}, imports_, address_ + DWORD{offsetof(PatchBlock, table)}});
    directories[IMAGE_DIRECTORY_ENTRY_SECURITY] = {0, 0};
    std::memcpy(at, directories, count * sizeof directories[0]);
  }

  void change_headers(std::string& bytes) const {
    const uint64_t optional = file_.optional_header_at();
    const OptionalHeader& before = file_.optional_header();
    put(bytes, file_.section_headers_end(), section_);
    put(bytes, optional - sizeof(IMAGE_FILE_HEADER) + offsetof(IMAGE_FILE_HEADER, NumberOfSections),
        static_cast<WORD>(file_.file_header().NumberOfSections + 1));
    const uint64_t end = uint64_t{address_} + section_.Misc.VirtualSize;
    put(bytes, optional + offsetof(OptionalHeader, SizeOfImage),
        static_cast<DWORD>(rounded_up(end, before.SectionAlignment)));
    put(bytes, optional + offsetof(OptionalHeader, SizeOfInitializedData),
        before.SizeOfInitializedData + section_.SizeOfRawData);
    change_directories(bytes);
    const uint64_t checksum_at = optional + offsetof(OptionalHeader, CheckSum);
    put(bytes, checksum_at, inject::checksum(bytes.data(), bytes.size(), static_cast<size_t>(checksum_at)));
  }

  const ProgramFile& file_;
  const std::string& library_;
  uint64_t begin_ = 0;   // of the section in the file
  DWORD address_ = 0;    // and in the image
  DWORD imports_ = 0;    // with ours
  std::string content_;  // of the section
  IMAGE_SECTION_HEADER section_ = {};
};

// ---- unpatching -----------------------------------------------------------------------------------

[[noreturn]] void changed_since() {
  throw Failure(exit_failed, "it was changed since it was patched, and that would be lost: take the file it came from");
}

// What the file was before, as its section tells it.
struct Original {
  PatchBlock block;
  std::string headers;
};

Original original_of(const ProgramFile& file) {
  const IMAGE_SECTION_HEADER* section = file.section(kPatchSection);
  if (section == nullptr) throw Failure(exit_failed, "it is not patched");
  Original original;
  const uint64_t begin = section->PointerToRawData, size = section->SizeOfRawData;
  if (size < sizeof original.block) changed_since();
  original.block = get<PatchBlock>(file.bytes(), begin);
  const Extent headers = {original.block.headers_at, original.block.headers_size};
  if (std::memcmp(original.block.magic, kMagic, sizeof kMagic) != 0 || headers.end() > size ||
      original.block.file_size > begin || original.block.headers_size > original.block.file_size ||
      original.block.name[kLongestName - 1] != 0)
    changed_since();
  original.headers = file.bytes().substr(begin + headers.begin, headers.size);
  return original;
}

// But for what a signature made later brings along: an entry, its data and another checksum.
std::string without_signature(const ProgramFile& file) {
  std::string bytes = file.bytes();
  const Extent signature = file.certificates();
  if (signature.size == 0) return bytes;
  if (signature.end() != bytes.size()) changed_since();
  bytes.resize(signature.begin);
  put(bytes, file.directories_at() + IMAGE_DIRECTORY_ENTRY_SECURITY * sizeof(IMAGE_DATA_DIRECTORY),
      IMAGE_DATA_DIRECTORY{0, 0});
  return bytes;
}

// Whether patching `before` again gives the file; a signature may be padded up to.
bool leads_here(const ProgramFile& file, const std::string& before, const std::string& library) {
  std::string again = Patcher(ProgramFile(before), library).result().bytes;
  std::string here = without_signature(file);
  if (here.size() > again.size() && here.size() - again.size() < 8) again.resize(here.size());
  const uint64_t checksum_at = file.optional_header_at() + offsetof(OptionalHeader, CheckSum);
  put(again, checksum_at, DWORD{0});
  put(here, checksum_at, DWORD{0});
  // What the program's own bytes were is told by their hash alone.
  const uint64_t hash_at = file.section(kPatchSection)->PointerToRawData + offsetof(PatchBlock, file_hash);
  put(again, hash_at, uint64_t{0});
  put(here, hash_at, uint64_t{0});
  return again == here;
}

}  // namespace

Patched patched(std::string bytes, const PatchRequest& request) {
  check_name(request.library);
  if (bytes.size() > kLargestFile) throw Failure(exit_failed, "it is larger than 1 GiB");
  const ProgramFile file(std::move(bytes));
  if (file.section(kPatchSection) != nullptr)
    throw Failure(exit_failed, "it is patched already; reheap unpatch takes that back");
  std::string reason = unfit(file, request);
  if (reason.empty()) reason = unsafe(file, request);
  if (!reason.empty()) throw Failure(exit_failed, reason);
  return Patcher(file, request.library).result();
}

Unpatched unpatched(std::string bytes) {
  const ProgramFile file(std::move(bytes));
  const Original original = original_of(file);
  Unpatched result;
  result.bytes = file.bytes().substr(0, original.block.file_size);
  result.bytes.replace(0, original.headers.size(), original.headers);
  try {
    if (!leads_here(file, result.bytes, original.block.name)) changed_since();
  } catch (const Failure&) {  // such headers were never patched
    changed_since();
  }
  result.exact = hash(result.bytes) == original.block.file_hash;
  result.was_signed_since = file.certificates().size != 0;
  return result;
}

}  // namespace rh::command
