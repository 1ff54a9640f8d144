// What a patched file looks like, what is refused, and that no file at all can crash or confuse it. The files are bytes
// here: nothing is written. patch_command_test.cpp runs them.

#include "command/windows/manifest.h"
#include "command/windows/patch.h"
#include "common/message.h"
#include "images.h"
#include "support.h"

#include <imagehlp.h>

#include <gtest/gtest.h>
#include <random>

namespace launch_test {
namespace {

using rh::command::Failure;
using rh::command::patched;
using rh::command::Patched;
using rh::command::PatchRequest;
using rh::command::ProgramFile;
using rh::command::unpatched;

constexpr PatchRequest permissive() {
  PatchRequest request;
  request.allow_unsigned = request.allow_library = true;
  return request;
}

std::string show() { return read_file(program_path(L"show.exe")); }

template <class Change> std::string changed(Change change) {
  std::string file = show();
  change(file);
  return file;
}

// Why a file is refused; "" when it is patched.
std::string refusal(const std::string& file, const PatchRequest& request = {}) {
  try {
    patched(file, request);
    return "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

void expect_refused(const std::string& file, const std::string& reason, const PatchRequest& request = {}) {
  EXPECT_NE(refusal(file, request).find(reason), std::string::npos) << refusal(file, request);
}

void expect_way_back(const std::string& file, const PatchRequest& request = {}) {
  const auto back = unpatched(patched(file, request).bytes);
  EXPECT_TRUE(back.exact);
  EXPECT_TRUE(back.bytes == file);
}

std::vector<std::string> imports(const std::string& file) {
  const ProgramFile program(file);
  std::vector<std::string> names;
  rh::pe::each_import(program.image(), [&](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    char name[256];
    EXPECT_TRUE(program.image().read_text(descriptor.Name, name, sizeof name));
    names.emplace_back(name);
    return true;
  });
  return names;
}

// ---- what is made ---------------------------------------------------------------------------------

TEST(Patch, PutsTheImportFirstAndKeepsTheOthers) {
  std::vector<std::string> wanted = imports(show());
  ASSERT_GT(wanted.size(), 1u);
  wanted.insert(wanted.begin(), "other.dll");
  PatchRequest request;
  request.library = "other.dll";
  EXPECT_EQ(imports(patched(show(), request).bytes), wanted);
}

TEST(Patch, MovesNothing) {
  const std::string before = show(), after = patched(before, {}).bytes;
  const DWORD headers = ProgramFile(before).optional_header().SizeOfHeaders;
  EXPECT_TRUE(after.compare(headers, before.size() - headers, before, headers) == 0);
  const auto sections = ProgramFile(before).sections(), more = ProgramFile(after).sections();
  ASSERT_EQ(more.size(), sections.size() + 1);
  for (std::size_t at = 0; at < sections.size(); ++at)
    EXPECT_EQ(std::memcmp(&sections[at], &more[at], sizeof more[at]), 0);
}

TEST(Patch, WritesTheChecksumThatWindowsComputes) {
  for (const std::size_t odd : {0, 1}) {
    std::string file = patched(show() + std::string(odd, 'x'), {}).bytes;
    DWORD found = 0, right = 0;
    ASSERT_NE(CheckSumMappedFile(file.data(), static_cast<DWORD>(file.size()), &found, &right), nullptr);
    EXPECT_EQ(found, right);
    EXPECT_NE(found, ProgramFile(show()).optional_header().CheckSum);
  }
}

TEST(Patch, TakesBackWhatItDid) {
  expect_way_back(show());
  expect_way_back(read_file(program_path(L"show_fixed.exe")));
  expect_way_back(read_file(program_path(L"silent.exe")));
  expect_way_back(read_file(program_path(L"probe.dll")), permissive());
}

// As GNU's linker writes sections of zeros that a program names itself.
TEST(Patch, TakesSectionsOfZerosThatHaveASize) {
  expect_way_back(changed([](std::string& file) {
    IMAGE_SECTION_HEADER* const zeros = section(file, ".bss");
    ASSERT_EQ(zeros->PointerToRawData, 0u);
    zeros->SizeOfRawData = headers_of(file.data())->OptionalHeader.FileAlignment;
  }));
}

TEST(Patch, GivesUpBoundImports) {
  const std::string file = changed([](std::string& bytes) {
    // Where linkers put them: behind the section headers, where ours goes.
    const DWORD at = static_cast<DWORD>(ProgramFile(bytes).section_headers_end());
    bytes[at] = 1;
    directory(bytes, IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT) = {at, 64};
    descriptors(bytes)[0].TimeDateStamp = 0xffffffff;
  });
  std::string after = patched(file, {}).bytes;
  EXPECT_EQ(directory(after, IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT).Size, 0u);
  const ProgramFile program(after);
  rh::pe::each_import(program.image(), [](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    EXPECT_EQ(descriptor.TimeDateStamp, 0u);
    return true;
  });
  expect_way_back(file);
}

// A signature as the files of others have it, as far as patching looks at it.
std::string with_signature(std::string file, std::size_t size = 256) {
  file.resize((file.size() + 7) & ~std::size_t{7});
  directory(file, IMAGE_DIRECTORY_ENTRY_SECURITY) = {static_cast<DWORD>(file.size()), static_cast<DWORD>(size)};
  return file + std::string(size, 's');
}

TEST(Patch, TakesASignatureOffWhenAllowed) {
  const std::string file = with_signature(show());
  expect_refused(file, "--allow-unsigned");
  Patched result = patched(file, permissive());
  EXPECT_TRUE(result.was_signed);
  EXPECT_FALSE(result.has_appended);
  EXPECT_EQ(directory(result.bytes, IMAGE_DIRECTORY_ENTRY_SECURITY).VirtualAddress, 0u);
  expect_way_back(file, permissive());
}

TEST(Patch, RepeatsAppendedDataAtTheEnd) {
  const std::string data = "appended data, which some look for here and some there";
  const std::string file = show() + data;
  const Patched result = patched(file, {});
  EXPECT_TRUE(result.has_appended);
  EXPECT_TRUE(result.bytes.ends_with(data));
  EXPECT_EQ(result.bytes.find(data), show().size());
  // For those that look behind the last section.
  const uint64_t end = ProgramFile(result.bytes).sections_end();
  EXPECT_TRUE(result.bytes.substr(end) == file.substr(ProgramFile(file).sections_end()));
  expect_way_back(file);
  expect_way_back(with_signature(file), permissive());
  // Without the signature, which would be none of what it says.
  std::string unsigned_now = patched(with_signature(file), permissive()).bytes;
  unsigned_now.erase(unsigned_now.find_last_not_of('\0') + 1);
  EXPECT_TRUE(unsigned_now.ends_with(data));
}

TEST(Patch, DoesNotTakeSymbolsForAppendedData) {
  ASSERT_NE(ProgramFile(show()).symbols().size, 0u) << "built without symbols";
  EXPECT_FALSE(patched(show(), {}).has_appended);
}

// ---- what was changed since -----------------------------------------------------------------------

TEST(Patch, TakesItBackFromAFileSignedSince) {
  const std::string file = with_signature(patched(show(), {}).bytes);
  const auto back = unpatched(file);
  EXPECT_TRUE(back.was_signed_since);
  EXPECT_TRUE(back.exact);
  EXPECT_TRUE(back.bytes == show());
}

TEST(Patch, KeepsChangesOfTheProgramItself) {
  std::string file = patched(show(), {}).bytes;
  const DWORD at = section(file, ".text")->PointerToRawData + 100;
  file[at] = static_cast<char>(file[at] ^ 0x55);
  const auto back = unpatched(file);
  EXPECT_FALSE(back.exact);
  EXPECT_EQ(back.bytes[at], file[at]);
  EXPECT_EQ(back.bytes.size(), show().size());
}

template <class Change> void expect_lost(Change change) {
  std::string file = patched(show(), {}).bytes;
  change(file);
  EXPECT_THROW(unpatched(file), Failure);
}

TEST(Patch, DoesNotTakeBackWhereChangesWouldBeLost) {
  expect_lost([](std::string& file) { file += "appended since"; });
  expect_lost([](std::string& file) { file.resize(file.size() - 512); });
  expect_lost([](std::string& file) { headers_of(file.data())->OptionalHeader.Subsystem ^= 1; });
  expect_lost([](std::string& file) { file[section(file, ".rhpatch")->PointerToRawData] = 'x'; });
  expect_lost([](std::string& file) { file = show(); });
}

// ---- what is refused ------------------------------------------------------------------------------

TEST(Patch, RefusesWhatIsPatchedAlready) {
  expect_refused(patched(show(), {}).bytes, "patched already");
  PatchRequest other;
  other.library = "kernel32.DLL";
  expect_refused(show(), "imports kernel32.DLL already", other);
}

TEST(Patch, RefusesWhatHasNothingToGain) {
  expect_refused(read_file(program_path(L"go_like.exe")), "Go program");
  std::string managed = read_file(program_path(L"managed_like.exe"));
  directory(managed, IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR) = {section(managed, ".clr")->VirtualAddress,
                                                              sizeof(IMAGE_COR20_HEADER)};
  expect_refused(managed, ".NET");
  std::string cygwin = read_file(program_path(L"uses_short.exe"));
  import_instead(cygwin, "cygwin1.dll");
  expect_refused(cygwin, "Cygwin program");
}

TEST(Patch, RefusesOtherKindsOfFile) {
  expect_refused("", "no program for Windows");
  expect_refused("#!/bin/sh\n", "no program for Windows");
  expect_refused(read_file(program_path(L"probe.dll")), "--allow-dll");
  expect_refused(
      changed([](std::string& file) { headers_of(file.data())->OptionalHeader.Subsystem = IMAGE_SUBSYSTEM_NATIVE; }),
      "driver");
  expect_refused(
      changed([](std::string& file) { headers_of(file.data())->FileHeader.Machine = IMAGE_FILE_MACHINE_IA64; }),
      "no reheap.dll for its architecture");
  expect_refused(changed([](std::string& file) { rename(*section(file, ".rdata"), ".reheap"); }), "has reheap in it");
}

TEST(Patch, RefusesPackedPrograms) {
  expect_refused(changed([](std::string& file) { rename(*section(file, ".text"), "UPX1"); }), "packed by UPX");
  expect_refused(changed([](std::string& file) { fill_with_noise(file, *section(file, ".text")); }),
                 "packed by something unknown");
}

TEST(Patch, RefusesWhatItCannotDoSafely) {
  expect_refused(changed([](std::string& file) {
                   headers_of(file.data())->OptionalHeader.DllCharacteristics |=
                       IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY;
                 }),
                 "only with the signature");
  expect_refused(changed([](std::string& file) { file[ProgramFile(file).section_headers_end() + 39] = 'x'; }),
                 "no room for a section");
  expect_refused(changed([](std::string& file) {
                   section(file, ".text")->PointerToRawData =
                       static_cast<DWORD>(ProgramFile(show()).section_headers_end());
                 }),
                 "no room for a section");
  expect_refused(changed([](std::string& file) {
                   directory(file, IMAGE_DIRECTORY_ENTRY_IAT) = {0, 0};
                   section(file, ".idata")->Characteristics &= ~DWORD{IMAGE_SCN_MEM_WRITE};
                 }),
                 "tables are fixed");
}

// A load configuration, in a section's unused bytes, that has imports looked for in the system's folder.
TEST(Patch, RefusesWhatWouldNotLookBesideItself) {
  const auto with_flags = [](WORD flags) {
    return changed([flags](std::string& file) {
      const IMAGE_SECTION_HEADER* data = section(file, ".rdata");
      constexpr DWORD size = 128;
      const DWORD flags_at = sizeof(void*) == 8 ? 78 : 54;
      std::memcpy(file.data() + data->PointerToRawData, &size, sizeof size);
      std::memcpy(file.data() + data->PointerToRawData + flags_at, &flags, sizeof flags);
      directory(file, IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG) = {data->VirtualAddress, size};
    });
  };
  expect_refused(with_flags(LOAD_LIBRARY_SEARCH_SYSTEM32), "from the system's folder alone");
  EXPECT_EQ(refusal(with_flags(0)), "");
  EXPECT_EQ(refusal(with_flags(LOAD_LIBRARY_SEARCH_SYSTEM32 | LOAD_LIBRARY_SEARCH_APPLICATION_DIR)), "");
}

TEST(Patch, RefusesNamesThatAreNone) {
  for (const char* name : {"", "a b.dll", "caf\xc3\xa9.dll", "C:\\reheap.dll", "../reheap.dll", "..", "reheap", ".dll",
                           "reheap.", "rehe?p.dll"}) {
    PatchRequest request;
    request.library = name;
    expect_refused(show(), "--dll", request);
  }
}

// ---- files of any content -------------------------------------------------------------------------

// Whatever it is: it is refused, or patched so that it can be taken back.
void expect_refused_or_reversible(const std::string& file, int& done) {
  Patched result;
  try {
    result = patched(file, permissive());
  } catch (const Failure&) {
    return;
  }
  ++done;
  try {
    const auto back = unpatched(result.bytes);
    ASSERT_TRUE(back.exact);
    ASSERT_TRUE(back.bytes == file);
  } catch (const Failure& failure) {
    FAIL() << failure.what();
  }
}

TEST(PatchAnything, IsNotConfusedByTruncatedFiles) {
  const std::string file = read_file(program_path(L"silent.exe")), more = patched(file, {}).bytes;
  int done = 0;
  for (std::size_t size = 0; size < file.size(); size += size < 1024 ? 1 : 97)
    expect_refused_or_reversible(file.substr(0, size), done);
  for (std::size_t size = 0; size < more.size(); size += size < 1024 ? 1 : 97)
    EXPECT_THROW(unpatched(more.substr(0, size)), Failure) << size;
}

TEST(PatchAnything, IsNotConfusedByAnyByteOfTheHeaders) {
  const std::string file = read_file(program_path(L"silent.exe"));
  int done = 0;
  for (std::size_t at = 0; at < ProgramFile(file).section_headers_end(); ++at) {
    for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string other = file;
      other[at] = static_cast<char>(other[at] ^ flip);
      expect_refused_or_reversible(other, done);
    }
  }
  EXPECT_GT(done, 100);
}

struct Range {
  std::size_t begin, size;
};

TEST(PatchAnything, IsNotConfusedByChangesAnywhere) {
  const std::string plain = show(), back = patched(plain, {}).bytes;
  const ProgramFile program(back);
  // Where most is read: headers, import tables, what patching left.
  std::vector<Range> ranges = {{0, 1024}, {0, back.size()}};
  for (const char* name : {".idata", ".rhpatch"})
    ranges.push_back({program.section(name)->PointerToRawData, program.section(name)->SizeOfRawData});
  std::mt19937 random(20240229);
  int done = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string file = round % 2 == 0 ? plain : back;
    for (unsigned changes = 1 + random() % 8; changes > 0; --changes) {
      const Range& range = ranges[random() % ranges.size()];
      file[(range.begin + random() % range.size) % file.size()] = static_cast<char>(random());
    }
    expect_refused_or_reversible(file, done);
    try {
      unpatched(file);
    } catch (const Failure&) {}
  }
  EXPECT_GT(done, 200);
}

// ---- manifests ------------------------------------------------------------------------------------

TEST(Manifest, TellsTheHeapThatItAsksFor) {
  using rh::command::heap_type_in;
  EXPECT_EQ(heap_type_in("<a><heapType xmlns='x'> SegmentHeap\r\n</heapType></a>"), "SegmentHeap");
  EXPECT_EQ(heap_type_in("<ws2:heapType xmlns:ws2='x'>SegmentHeap</ws2:heapType>"), "SegmentHeap");
  for (const char* none :
       {"", "<", "<a>", "<heapType", "<heapType>", "<heapType/>", "<heapType>Segment Heap</heapType>",
        "<heapTypes>SegmentHeap</heapTypes>", "<!-- <heapType>SegmentHeap</heapType> -->",
        "<!-- <heapType>SegmentHeap</heapType>", "<heapType>\x1b[31m</heapType>"})
    EXPECT_EQ(heap_type_in(none), "") << none;
}

TEST(Manifest, IsFoundAmongTheResources) {
  const std::string file = read_file(program_path(L"manifested.exe"));
  EXPECT_EQ(rh::command::heap_type_in(rh::command::manifest_of(ProgramFile(file).image())), "SegmentHeap");
  EXPECT_EQ(rh::command::manifest_of(ProgramFile(read_file(program_path(L"silent.exe"))).image()), "");
}

// A tree that leads anywhere, itself included.
TEST(Manifest, IsReadFromNoDamagedTree) {
  const std::string whole = read_file(program_path(L"manifested.exe"));
  for (std::size_t at = 0; at < 88; ++at) {
    for (const char byte : {'\x00', '\x7f', '\xff'}) {
      std::string file = whole;
      file[section(file, ".rsrc")->PointerToRawData + at] = byte;
      const std::string found = rh::command::heap_type_in(rh::command::manifest_of(ProgramFile(file).image()));
      EXPECT_TRUE(found.empty() || found == "SegmentHeap") << at;
    }
  }
}

}  // namespace
}  // namespace launch_test
