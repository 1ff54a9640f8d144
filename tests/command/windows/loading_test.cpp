// Libraries that the program's loader does not take: the program runs as if it had been started plainly, once, or not
// at all where the library is required.

#include "images.h"
#include "support.h"

#include <filesystem>
#include <gtest/gtest.h>

namespace launch_test {
namespace {

std::wstring library_path() { return std::filesystem::path(launcher_path()).replace_filename(L"reheap.dll").wstring(); }

std::wstring run_with(const std::wstring& library, const std::wstring& options = L"") {
  return launcher() + L" run " + options + L" --dll " + quoted(library) + L" -- ";
}

// Lines of the launcher's own, which begin so, are taken out.
std::string without_own_lines(const std::string& errors) {
  std::string rest;
  for (std::size_t at = 0, end = 0; at < errors.size(); at = end) {
    end = errors.find('\n', at);
    end = end == std::string::npos ? errors.size() : end + 1;
    if (errors.compare(at, 8, "reheap: ") != 0) rest += errors.substr(at, end - at);
  }
  return rest;
}

void expect_unchanged(const std::wstring& library, const std::wstring& line, const std::string& reason) {
  const Ended plain = start(line);
  const Ended told = start(run_with(library) + line);
  EXPECT_EQ(told.code, plain.code);
  EXPECT_EQ(told.output, plain.output);
  EXPECT_EQ(without_own_lines(told.errors), plain.errors);
  EXPECT_NE(told.errors.find(reason), std::string::npos) << told.errors;
  EXPECT_NE(told.errors.find("it runs unchanged\r\n"), std::string::npos) << told.errors;
  EXPECT_EQ(start(run_with(library, L"--quiet") + line).errors, plain.errors);
  const Ended refused = start(run_with(library, L"--require") + line);
  EXPECT_EQ(refused.code, 125u);
  EXPECT_EQ(refused.output, "");
  EXPECT_EQ(without_own_lines(refused.errors), "");
  EXPECT_NE(refused.errors.find(reason), std::string::npos) << refused.errors;
}

std::wstring show() { return program(L"show.exe") + L" exit=77"; }

// A library, changed in a way that its checksum would tell unless it has none.
class ChangedLibrary {
 public:
  template <class Change> ChangedLibrary(const std::wstring& from, Change change) {
    std::string file = read_file(from);
    headers_of(file.data())->OptionalHeader.CheckSum = 0;
    change(file);
    write_file(path(), file);
  }
  std::wstring path() const { return folder_.path(L"changed.dll"); }

 private:
  Folder folder_;
};

// Where it begins there is no instruction.
void crash(std::string& file) {
  const IMAGE_SECTION_HEADER* code = section(file, ".text");
  const DWORD entry = headers_of(file.data())->OptionalHeader.AddressOfEntryPoint;
  file.replace(entry - code->VirtualAddress + code->PointerToRawData, 2, "\x0f\x0b");
}

TEST(Loading, FailsWhereThePathIsTooLongForTheLoader) {
  const Folder folder;
  constexpr std::size_t length = 254;
  const std::wstring name = L"\\reheap.dll";
  const std::size_t rest = length - folder.path().size() - 1 - name.size();
  const std::wstring deep = folder.path(std::wstring(rest, L'x'));
  std::filesystem::create_directories(deep);
  std::filesystem::copy_file(library_path(), deep + name);
  ASSERT_EQ((deep + name).size(), length);
  expect_unchanged(deep + name, show(), "its loader failed before the library was in (");
}

TEST(Loading, FailsWithoutADependency) {
  for (const std::wstring& library : {library_path(), program_path(L"probe.dll")}) {
    const ChangedLibrary changed(library, lose_dependency);
    expect_unchanged(changed.path(), show(), "its loader failed before the library was in (");
  }
}

TEST(Loading, FailsWhereTheLibraryCrashesBeforeItIsIn) {
  const ChangedLibrary changed(library_path(), crash);
  expect_unchanged(changed.path(), show(), "its loader failed before the library was in (");
}

TEST(Loading, IsNotTriedWithADamagedFile) {
  const Folder folder;
  const std::string file = read_file(library_path());
  std::string damaged = file;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  for (const std::string& bytes : {file.substr(0, file.size() / 2), file.substr(0, 1024), damaged}) {
    write_file(folder.path(L"reheap.dll"), bytes);
    expect_unchanged(folder.path(L"reheap.dll"), show(), "reheap.dll for its architecture is damaged");
  }
}

// In a 32-bit process on a 64-bit system nothing can be loaded late.
TEST(Loading, FailsLate) {
  if (sizeof(void*) == 4) GTEST_SKIP() << "nothing is loaded late here";
  const Folder folder;
  std::string file = read_file(program_path(L"show.exe"));
  directory(file, IMAGE_DIRECTORY_ENTRY_IAT) = {0, 0};
  section(file, ".idata")->Characteristics &= ~static_cast<DWORD>(IMAGE_SCN_MEM_WRITE);
  write_file(folder.path(L"fixed.exe"), file);
  const ChangedLibrary changed(program_path(L"probe.dll"), lose_dependency);
  expect_unchanged(changed.path(), quoted(folder.path(L"fixed.exe")) + L" exit=77",
                   "its loader failed before the library was in");
}

// What ends by itself as a failing loader would is not started again.
TEST(Loading, DoesNotRunAProgramTwice) {
  const std::wstring crashes = program(L"show.exe") + L" exit=0xC0000135";
  for (const std::wstring& library : {library_path(), program_path(L"probe.dll")}) {
    const Ended ended = start(run_with(library, L"--require") + crashes);
    EXPECT_EQ(ended.code, 0xC0000135u);
    EXPECT_EQ(ended.errors, "to stderr\r\n");
  }
}

TEST(Loading, IsToldByTheDoctor) {
  const ChangedLibrary changed(library_path(), lose_dependency);
  const Ended ended = start(launcher() + L" doctor --dll " + quoted(changed.path()) + L" -- " + show());
  EXPECT_EQ(ended.code, 1u);
  EXPECT_NE(ended.output.find("no: its loader failed before the library was in ("), std::string::npos) << ended.output;
}

// The program has come in with one library, and what it starts finds another in its place.
TEST(Loading, FailsInProgramsThatAreStarted) {
  const Folder folder;
  const std::string good = read_file(library_path());
  const std::wstring launcher = quoted(folder.copy(launcher_path(), L"reheap.exe"));
  const ChangedLibrary changed(library_path(), lose_dependency);
  write_file(folder.path(L"cut.dll"), good.substr(0, good.size() / 2));
  for (const std::wstring& other : {changed.path(), folder.path(L"cut.dll")}) {
    folder.copy(library_path(), L"reheap.dll");
    const std::wstring exchange = L"move " + quoted(folder.path(L"reheap.dll")) + L" " +
                                  quoted(folder.path(L"old.dll")) + L" >nul && copy " + quoted(other) + L" " +
                                  quoted(folder.path(L"reheap.dll")) + L" >nul && ";
    const std::wstring asks = program(L"show.exe") + L" has=reheap.dll";
    const Ended ended = start(launcher + L" run --require -- cmd.exe /s /c \"" + exchange + asks + L"\"");
    EXPECT_EQ(ended.code, 0u) << ended.output;
    EXPECT_EQ(ended.errors, "to stderr\r\n");
    std::filesystem::remove(folder.path(L"old.dll"));
  }
}

}  // namespace
}  // namespace launch_test
