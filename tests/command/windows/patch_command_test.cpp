// `reheap patch` and `unpatch` from outside, and the programs that they make.

#include "images.h"
#include "support.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

namespace launch_test {
namespace {

// A folder with a program in it, and the stand-in for reheap.dll.
class Place {
 public:
  explicit Place(const std::wstring& program = L"show.exe") {
    folder_.copy(program_path(program), L"app.exe");
    folder_.copy(program_path(L"probe.dll"), L"probe.dll");
  }
  const Folder& folder() const { return folder_; }
  std::wstring app() const { return L"\"" + folder_.path(L"app.exe") + L"\""; }
  std::string bytes() const { return read_file(folder_.path(L"app.exe")); }
  Ended call(const std::wstring& words) const {
    Start there;
    there.folder = folder_.path();
    return start(launcher() + L" " + words, there);
  }
  // What lies there.
  std::string files() const {
    std::string names;
    WIN32_FIND_DATAA file;
    SetCurrentDirectoryW(folder_.path().c_str());
    const HANDLE found = FindFirstFileA("*", &file);
    do names += std::string(file.cFileName) + "\n";
    while (FindNextFileA(found, &file));
    FindClose(found);
    SetCurrentDirectoryW(L"..");
    return names;
  }

 private:
  Folder folder_;
};

constexpr const wchar_t* kPatch = L"patch app.exe --dll probe.dll";

TEST(PatchCommand, MakesAProgramThatBringsTheLibraryFirst) {
  const Place place;
  const std::string before = place.bytes();
  const Attached attached;
  const Ended plain = start(place.app() + L" exit=7");
  EXPECT_EQ(attached.lines(), "");
  const Ended patch = place.call(kPatch);
  EXPECT_EQ(patch.code, 0u) << patch.errors;
  EXPECT_NE(patch.output.find("patched; probe.dll must lie beside it"), std::string::npos);
  const Ended ended = start(place.app() + L" exit=7");
  EXPECT_EQ(ended.output, plain.output);
  EXPECT_EQ(ended.code, 7u);
  EXPECT_EQ(attached.lines(), before_any_runtime());
  EXPECT_EQ(place.call(L"unpatch app.exe").code, 0u);
  EXPECT_TRUE(place.bytes() == before);
  EXPECT_EQ(start(place.app() + L" exit=7").output, plain.output);
  EXPECT_EQ(attached.lines(), before_any_runtime());
}

TEST(PatchCommand, TakesProgramsOfEveryLayout) {
  for (const wchar_t* name : {L"show_fixed.exe", L"silent.exe"}) {
    const Place place(name);
    const Attached attached;
    EXPECT_EQ(place.call(kPatch).code, 0u);
    start(place.app());
    EXPECT_EQ(attached.lines(), before_any_runtime());
  }
}

TEST(PatchCommand, TakesTheOtherArchitecture) {
  const std::wstring other = program_path(L"" OTHER_FROM_PROGRAMS);
  if (!std::filesystem::exists(other + L"\\show.exe")) GTEST_SKIP() << "was not built";
  const Folder folder;
  const Attached attached;
  const std::wstring app = folder.copy(other + L"\\show.exe", L"app.exe");
  folder.copy(other + L"\\probe.dll", L"probe.dll");
  const std::string before = read_file(app);
  const bool runs_here = start(L"\"" + app + L"\"").errors == "to stderr\r\n";
  EXPECT_EQ(start(launcher() + L" patch --dll probe.dll \"" + app + L"\"").code, 0u);
  if (runs_here) {
    EXPECT_EQ(start(L"\"" + app + L"\" exit=7").code, 7u);
    EXPECT_EQ(attached.lines(), sizeof(void*) == 8 ? "before any runtime, 32-bit\n" : "before any runtime, 64-bit\n");
  }
  EXPECT_EQ(start(launcher() + L" unpatch \"" + app + L"\"").code, 0u);
  EXPECT_TRUE(read_file(app) == before);
}

// Put in by the system's own functions.
void add_resource(const std::wstring& file, const std::string& bytes) {
  const HANDLE update = BeginUpdateResourceW(file.c_str(), FALSE);
  UpdateResourceW(update, MAKEINTRESOURCEW(10), L"TEXT", 0, const_cast<char*>(bytes.data()),
                  static_cast<DWORD>(bytes.size()));
  ASSERT_TRUE(EndUpdateResourceW(update, FALSE));
}

std::string resource(const std::wstring& file) {
  const HMODULE module = LoadLibraryExW(file.c_str(), nullptr, LOAD_LIBRARY_AS_DATAFILE);
  const HRSRC found = FindResourceW(module, L"TEXT", MAKEINTRESOURCEW(10));
  if (found == nullptr) return "none";
  const std::string bytes(static_cast<const char*>(LockResource(LoadResource(module, found))),
                          SizeofResource(module, found));
  FreeLibrary(module);
  return bytes;
}

TEST(PatchCommand, KeepsResources) {
  const Place place;
  add_resource(place.folder().path(L"app.exe"), "kept");
  const std::string before = place.bytes();
  EXPECT_EQ(resource(place.folder().path(L"app.exe")), "kept");
  EXPECT_EQ(place.call(kPatch).code, 0u);
  EXPECT_EQ(resource(place.folder().path(L"app.exe")), "kept");
  EXPECT_EQ(place.call(L"unpatch app.exe").code, 0u);
  EXPECT_TRUE(place.bytes() == before);
}

TEST(PatchCommand, WritesElsewhereWhenAsked) {
  const Place place;
  const std::string before = place.bytes();
  EXPECT_EQ(place.call(L"patch app.exe -o \"a new one.exe\" --dll probe.dll").code, 0u);
  EXPECT_TRUE(place.bytes() == before);
  EXPECT_EQ(place.call(L"unpatch \"a new one.exe\" -o back.exe").code, 0u);
  EXPECT_TRUE(read_file(place.folder().path(L"back.exe")) == before);
  EXPECT_EQ(std::ranges::count(place.files(), '\n'), 2 + 4);  // with . and ..
}

void expect_untouched(const Place& place, const std::wstring& words, DWORD code, const std::string& told) {
  const std::string before = place.bytes();
  const std::string files = place.files();
  const Ended ended = place.call(words);
  EXPECT_EQ(ended.code, code);
  EXPECT_EQ(ended.output, "");
  EXPECT_TRUE(ended.errors.starts_with("reheap: ")) << ended.errors;
  EXPECT_NE(ended.errors.find(told), std::string::npos) << ended.errors;
  EXPECT_TRUE(place.bytes() == before);
  EXPECT_EQ(place.files(), files);
}

TEST(PatchCommand, LeavesFilesAloneThatItRefuses) {
  expect_untouched(Place(L"go_like.exe"), kPatch, 125, "app.exe: it is a Go program");
  expect_untouched(Place(L"probe.dll"), kPatch, 125, "--allow-dll");
  expect_untouched(Place(), L"unpatch app.exe", 125, "it is not patched");
  expect_untouched(Place(), L"patch other.exe", 127, "other.exe");
  expect_untouched(Place(), L"patch app.exe --dll a\\b.dll", 2, "--dll");
  expect_untouched(Place(), L"patch", 2, "FILE is required");
  expect_untouched(Place(), L"patch app.exe --fast", 2, "unknown option --fast");
  expect_untouched(Place(), L"patch app.exe -- app.exe", 2, "before any --");
  const Place text;
  write_file(text.folder().path(L"app.exe"), "this is no program");
  expect_untouched(text, kPatch, 126, "no program for Windows");
}

TEST(PatchCommand, EndsLinesOnce) { EXPECT_EQ(Place().call(L"patch app.exe").output.find("\r\r"), std::string::npos); }

TEST(PatchCommand, NamesAMissingFileOnce) {
  for (const wchar_t* words : {L"patch none.exe", L"unpatch none.exe"}) {
    const std::string errors = Place().call(words).errors;
    EXPECT_EQ(errors.find("none.exe"), errors.rfind("none.exe")) << errors;
  }
}

TEST(PatchCommand, LeavesAFileAloneThatCannotBeReplaced) {
  const Place place;
  const HANDLE held = CreateFileW(place.folder().path(L"app.exe").c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr,
                                  OPEN_EXISTING, 0, nullptr);
  expect_untouched(place, kPatch, 125, "app.exe: ");
  CloseHandle(held);
}

TEST(PatchCommand, CopiesTheLibraryThere) {
  const Place place;
  const Folder tools;
  const Attached attached;
  const std::wstring launcher = L"\"" + tools.copy(launcher_path(), L"reheap.exe") + L"\" ";
  tools.copy(program_path(L"probe.dll"), L"reheap.dll");
  const std::wstring app = place.app() + L" --copy-dll";
  const Ended patch = start(launcher + L"patch " + app);
  EXPECT_EQ(patch.code, 0u) << patch.errors;
  EXPECT_EQ(patch.errors, "");
  EXPECT_TRUE(read_file(place.folder().path(L"reheap.dll")) == read_file(program_path(L"probe.dll")));
  EXPECT_EQ(start(place.app() + L" exit=3").code, 3u);
  EXPECT_EQ(attached.lines(), before_any_runtime());
}

// Somebody else's, and one for another processor.
std::vector<std::string> unfit_libraries() {
  std::string other = read_file(program_path(L"probe.dll"));
  headers_of(other.data())->FileHeader.Machine = IMAGE_FILE_MACHINE_ARMNT;
  return {"somebody else's", other};
}

TEST(PatchCommand, CopiesOverNothingElse) {
  for (const std::string& library : unfit_libraries()) {
    const Place place;
    write_file(place.folder().path(L"reheap.dll"), library);
    expect_untouched(place, L"patch app.exe --copy-dll", 125, "is no reheap.dll for it");
    EXPECT_TRUE(read_file(place.folder().path(L"reheap.dll")) == library);
  }
}

TEST(PatchCommand, WarnsOfAMissingLibrary) {
  const Place place;
  const Ended ended = place.call(L"patch app.exe --dll missing.dll");
  EXPECT_EQ(ended.code, 0u);
  EXPECT_NE(ended.errors.find("missing.dll is not there"), std::string::npos) << ended.errors;
}

TEST(PatchCommand, WarnsOfALibraryThatDoesNotFit) {
  for (const std::string& library : unfit_libraries()) {
    const Place place;
    write_file(place.folder().path(L"unfit.dll"), library);
    const Ended ended = place.call(L"patch app.exe --dll unfit.dll");
    EXPECT_EQ(ended.code, 0u);
    EXPECT_NE(ended.errors.find("unfit.dll is no reheap.dll for it"), std::string::npos) << ended.errors;
  }
  EXPECT_EQ(Place().call(kPatch).errors, "");
}

// A patched program by the launcher: once is enough.
TEST(PatchCommand, LeavesTheLauncherItsWay) {
  const Place place;
  EXPECT_EQ(place.call(kPatch).code, 0u);
  const Attached attached;
  EXPECT_EQ(start(run_with_probe(L"--require") + place.app() + L" exit=3").code, 3u);
  EXPECT_NE(attached.lines().find(before_any_runtime()), std::string::npos);
  const Ended doctor = place.call(L"doctor --dll probe.dll -- " + place.app());
  EXPECT_NE(doctor.output.find("patched       yes"), std::string::npos) << doctor.output;
}

}  // namespace
}  // namespace launch_test
