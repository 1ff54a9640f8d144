// Images of every kind, and those that cannot be reached.

#include "images.h"
#include "support.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

namespace launch_test {
namespace {

constexpr DWORD kNotReached = 125;

bool is_one_line(const std::string& text) { return text.starts_with("reheap: ") && text.find('\n') == text.size() - 1; }

// A program of the tests, changed.
class Changed {
 public:
  template <class Change> Changed(const std::wstring& program, Change change) {
    std::string file = read_file(program_path(program));
    change(file);
    write_file(path(), file);
  }
  std::wstring line() const { return L"\"" + path() + L"\""; }
  void put_beside(const std::wstring& library, const std::wstring& name) const {
    folder_.copy(program_path(library), name);
  }

 private:
  std::wstring path() const { return folder_.path(L"changed.exe"); }
  Folder folder_;
};

void expect_reached(const std::wstring& line, DWORD code) {
  const Attached attached;
  const Ended ended = start(run_with_probe(L"--require") + line);
  EXPECT_EQ(ended.code, code) << ended.errors;
  EXPECT_EQ(attached.lines(), before_any_runtime());
}

void expect_refused(const std::wstring& line, DWORD code, const std::string& reason) {
  const Attached attached;
  const Ended left = start(run_with_probe() + line);
  EXPECT_EQ(left.code, code);
  EXPECT_TRUE(is_one_line(left.errors)) << left.errors;
  EXPECT_NE(left.errors.find(reason), std::string::npos) << left.errors;
  EXPECT_EQ(start(run_with_probe(L"--quiet") + line).errors, "");
  const Ended refused = start(run_with_probe(L"--require") + line);
  EXPECT_EQ(refused.code, kNotReached);
  EXPECT_TRUE(is_one_line(refused.errors)) << refused.errors;
  EXPECT_EQ(attached.lines(), "");
}

TEST(Images, ReachesAProgramThatImportsNothing) { expect_reached(program(L"silent.exe"), 42); }

TEST(Images, ReachesAFixedImageAndAMovableOne) {
  expect_reached(program(L"show_fixed.exe") + L" exit=3", 3);
  expect_reached(program(L"show.exe") + L" exit=3", 3);
}

TEST(Images, ReachesAProgramWhoseTablesHaveNoDirectory) {
  const Changed changed(L"show.exe", [](std::string& file) {
    directory(file, IMAGE_DIRECTORY_ENTRY_IAT) = {0, 0};
    section(file, ".idata")->Characteristics |= IMAGE_SCN_MEM_WRITE;
  });
  expect_reached(changed.line() + L" exit=3", 3);
}

// The control of every "before any runtime". In a 32-bit process on a 64-bit system nothing can be loaded so.
TEST(Images, LoadsLateWhereTablesAreFixed) {
  const Changed changed(L"show.exe", [](std::string& file) {
    directory(file, IMAGE_DIRECTORY_ENTRY_IAT) = {0, 0};
    section(file, ".idata")->Characteristics &= ~static_cast<DWORD>(IMAGE_SCN_MEM_WRITE);
  });
  const Attached attached;
  const bool refused = sizeof(void*) == 4;
  const Ended ended = start(run_with_probe() + changed.line() + L" exit=3");
  EXPECT_EQ(ended.code, 3u);
  EXPECT_NE(ended.errors.find("import tables are fixed"), std::string::npos) << ended.errors;
  EXPECT_EQ(attached.lines(), refused ? "" : "after a runtime, 64-bit\n");
  EXPECT_EQ(start(run_with_probe(L"--require") + changed.line() + L" exit=3").code, refused ? kNotReached : 3u);
}

TEST(Images, LeavesGoAlone) { expect_refused(program(L"go_like.exe"), 42, "Go program"); }

TEST(Images, LeavesManagedProgramsAlone) {
  const Changed changed(L"managed_like.exe", [](std::string& file) {
    const IMAGE_SECTION_HEADER* header = section(file, ".clr");
    directory(file, IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR) = {header->VirtualAddress, sizeof(IMAGE_COR20_HEADER)};
  });
  // Not started here: that takes a .NET.
  const Attached attached;
  const Ended refused = start(run_with_probe(L"--require") + changed.line());
  EXPECT_EQ(refused.code, kNotReached);
  EXPECT_NE(refused.errors.find(".NET"), std::string::npos) << refused.errors;
  EXPECT_EQ(attached.lines(), "");
}

// As its linker names it, and as its users may.
TEST(Images, LeavesCygwinsProgramsAlone) {
  for (const char* name : {"cygwin1.dll", "MSYS-2.0.dll"}) {
    const Changed changed(L"uses_short.exe", [name](std::string& file) { import_instead(file, name); });
    changed.put_beside(L"msvcr70d.dll", std::wstring(name, name + std::strlen(name)));
    expect_refused(changed.line(), 42, "Cygwin program");
  }
}

std::string examined(const std::wstring& line) {
  return start(launcher() + L" doctor --dll " + program(L"probe.dll") + L" -- " + line).output;
}

TEST(Images, TellsPackedProgramsByTheirSections) {
  const Changed changed(L"show.exe", [](std::string& file) { rename(*section(file, ".CRT"), "UPX2"); });
  const std::string told = examined(changed.line());
  EXPECT_NE(told.find("packed by UPX: what it imports shows when it runs"), std::string::npos) << told;
  EXPECT_EQ(examined(program(L"show.exe")).find("packed"), std::string::npos);
  expect_reached(changed.line() + L" exit=3", 3);
}

TEST(Images, TellsTheSystemsRuntimeWithItsVersion) {
  const std::string told = examined(program(L"show.exe"));
  const std::size_t at = told.find("C runtime     ucrtbase ");
  ASSERT_NE(at, std::string::npos) << told;
  int parts = 0;
  EXPECT_EQ(sscanf(told.c_str() + at, "C runtime ucrtbase %*d.%*d.%*d.%*d%n", &parts), 0);
  EXPECT_GT(parts, 0) << told;
}

TEST(Images, TellsTheHeapThatAManifestAsksFor) {
  const std::string told = examined(program(L"manifested.exe"));
  EXPECT_NE(told.find("heap type     SegmentHeap, as its manifest asks"), std::string::npos) << told;
  EXPECT_EQ(examined(program(L"silent.exe")).find("heap type"), std::string::npos);
}

TEST(Images, TellsCygwinsProgramsAndWhatTheyAllocateFrom) {
  const Changed changed(L"uses_short.exe", [](std::string& file) { import_instead(file, "cygwin1.dll"); });
  changed.put_beside(L"msvcr70d.dll", L"cygwin1.dll");
  const std::string told = examined(changed.line());
  for (const char* part : {"kind          Cygwin", "C runtime     cygwin1",
                           "imports       cygwin1.dll: ", "reached       no: it is a Cygwin program"})
    EXPECT_NE(told.find(part), std::string::npos) << part << "\n" << told;
}

TEST(Images, LeavesAProgramAloneWithoutALibraryForIt) {
  const Folder folder;
  const std::wstring lonely = L"\"" + folder.copy(launcher_path(), L"reheap.exe") + L"\" run ";
  const std::wstring line = program(L"show.exe") + L" exit=3";
  const Ended left = start(lonely + L"-- " + line);
  EXPECT_EQ(left.code, 3u);
  EXPECT_NE(left.errors.find("no reheap.dll"), std::string::npos) << left.errors;
  EXPECT_EQ(start(lonely + L"--require -- " + line).code, kNotReached);
}

// Whoever may make folders there could put in what everybody runs.
TEST(Images, FindsTheLibraryInTheLaunchersFolderAlone) {
  const Attached attached;
  for (const wchar_t* other : {L"windows-x86_64", L"windows-i686", L"windows-arm64"}) {
    const Folder folder;
    const std::wstring planted = folder.path(other) + L"\\bin";
    std::filesystem::create_directories(planted);
    std::filesystem::create_directories(folder.path(L"installed\\bin"));
    folder.copy(program_path(L"probe.dll"), other + std::wstring(L"\\bin\\reheap.dll"));
    const std::wstring lonely = L"\"" + folder.copy(launcher_path(), L"installed\\bin\\reheap.exe") + L"\" run ";
    const Ended left = start(lonely + L"-- " + program(L"show.exe") + L" exit=3");
    EXPECT_EQ(left.code, 3u);
    EXPECT_NE(left.errors.find("no reheap.dll"), std::string::npos) << left.errors;
  }
  EXPECT_EQ(attached.lines(), "");
}

TEST(Images, FindsTheLibraryBesideTheLauncher) {
  const Folder folder;
  const Attached attached;
  folder.copy(program_path(L"probe.dll"), L"reheap.dll");
  const std::wstring launcher = folder.copy(launcher_path(), L"reheap.exe");
  EXPECT_EQ(start(L"\"" + launcher + L"\" run -- " + program(L"show.exe") + L" exit=3").code, 3u);
  EXPECT_EQ(attached.lines(), before_any_runtime());
}

TEST(Images, ReachesByALibraryWhosePathIsNotAscii) {
  const Folder folder(L" \u4e2d\u6587");
  const Attached attached;
  const std::wstring library = folder.copy(program_path(L"probe.dll"), L"probe.dll");
  const Ended ended =
      start(launcher() + L" run --require --dll \"" + library + L"\" -- " + program(L"show.exe") + L" exit=3");
  EXPECT_EQ(ended.code, 3u) << ended.errors;
  // By its short name, or late where it has none.
  EXPECT_NE(attached.lines(), "");
}

}  // namespace
}  // namespace launch_test
