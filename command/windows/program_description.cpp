#include "program_description.h"

#include "common/joined.h"
#include "manifest.h"
#include "redirect/crt/runtimes.h"
#include "redirect/process/kind.h"
#include "text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

namespace rh::command {
namespace {

std::string lower(std::string text) {
  for (char& character : text)
    if (character >= 'A' && character <= 'Z') character = static_cast<char>(character - 'A' + 'a');
  return text;
}

// The C runtime that a DLL belongs to, or "".
std::string runtime_of(const std::string& library) {
  const std::string name = lower(library).substr(0, library.find_last_of('.'));
  if (name.starts_with("api-ms-win-crt-")) return "ucrtbase";
  if (inject::is_cygwin_library(library.c_str())) return name;
  const std::wstring file = wide(name + ".dll");
  if (!redirect::is_runtime(file.data(), file.size())) return {};
  if (name == "ucrtbased" || name == "msvcrtd") return name + " (debug)";
  return name.starts_with("ucrtbase") ? "ucrtbase" : name;
}

void add_once(std::vector<std::string>& list, const std::string& word) {
  if (!word.empty() && std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
}

// ---- packers --------------------------------------------------------------------------------------

struct Packer {
  const char* section;  // how the names of its sections begin
  const char* name;
};
constexpr Packer kPackers[] = {
    {"UPX", "UPX"},        {".aspack", "ASPack"}, {".MPRESS", "MPRESS"},   {".petite", "Petite"},
    {".nsp", "NsPack"},    {"PEC2", "PECompact"}, {".themida", "Themida"}, {".winlice", "Themida"},
    {".vmp", "VMProtect"}, {".enigma", "Enigma"}, {".upack", "Upack"},     {".boxld", "BoxedApp"},
};

// Of so many bytes' distribution, in bits a byte.
double entropy(const size_t (&counts)[256], size_t total) {
  double bits = 0;
  for (const size_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(total);
    bits -= share * std::log2(share);
  }
  return bits;
}

// Machine code has about 6 bits of information a byte, what was compressed or encrypted 8. Pieces all over the section
// tell.
bool reads_like_noise(const pe::Image& image, const IMAGE_SECTION_HEADER& section) {
  constexpr DWORD kPiece = 4096, kPieces = 64;
  constexpr double kNoise = 7.5;
  const DWORD size = section.Misc.VirtualSize;
  const DWORD step = std::max(kPiece, size / kPieces / kPiece * kPiece);
  size_t counts[256] = {}, total = 0;
  unsigned char bytes[kPiece];
  for (DWORD at = 0; at < size && size - at >= kPiece; at += step) {
    if (!image.read(section.VirtualAddress + at, bytes, kPiece)) break;
    for (const unsigned char byte : bytes) ++counts[byte];
    total += kPiece;
  }
  return total != 0 && entropy(counts, total) > kNoise;
}

// ---- versions -------------------------------------------------------------------------------------

// A file's version, as its resources have it: searched for by its mark.
std::string version_of(const std::wstring& file) {
  constexpr DWORD kMark = 0xFEEF04BD;
  const std::string bytes = read_file(file.c_str());
  VS_FIXEDFILEINFO info;
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&kMark), 4));
  if (at == std::string::npos || bytes.size() - at < sizeof info) return {};
  std::memcpy(&info, bytes.data() + at, sizeof info);
  const auto part = [](DWORD two, int which) { return std::to_string(which == 0 ? HIWORD(two) : LOWORD(two)); };
  return part(info.dwFileVersionMS, 0) + "." + part(info.dwFileVersionMS, 1) + "." + part(info.dwFileVersionLS, 0) +
         "." + part(info.dwFileVersionLS, 1);
}

std::wstring system_folder(const pe::Image& image) {
  wchar_t folder[MAX_PATH];
  const bool other = image.machine == IMAGE_FILE_MACHINE_I386 && pe::own_machine != image.machine;
  const UINT length = other ? GetSystemWow64DirectoryW(folder, MAX_PATH) : GetSystemDirectoryW(folder, MAX_PATH);
  return length != 0 && length < MAX_PATH ? folder : L"";
}

// The runtime with the version of the DLL that will be found: beside the program, but for the system's own.
std::string with_version(const std::string& runtime, const pe::Image& image, const std::wstring& program) {
  const std::wstring file = L"\\" + wide(runtime.substr(0, runtime.find(' '))) + L".dll";
  std::string version;
  if (!runtime.starts_with("ucrtbase")) version = version_of(program.substr(0, program.find_last_of(L"\\/")) + file);
  if (version.empty()) version = version_of(system_folder(image) + file);
  return version.empty() ? runtime : runtime + " " + version;
}

// Microsoft's linker, whose version is that of the runtime it links, leaves a mark before the headers.
std::string linker_of(const pe::Image& image) {
  constexpr DWORD kFirst = 0x80;
  const uintptr_t headers = image.optional_header - image.base - sizeof(DWORD) - sizeof(IMAGE_FILE_HEADER);
  BYTE version[2] = {};
  image.read_at(image.optional_header + sizeof(WORD), version, sizeof version);
  for (DWORD at = kFirst; at + sizeof(DWORD) <= headers; at += sizeof(DWORD)) {
    char mark[4];
    if (image.read(at, mark, sizeof mark) && std::string_view(mark, 4) == "Rich")
      return ", by Microsoft's linker " + std::to_string(version[0]) + "." + std::to_string(version[1]);
  }
  return {};
}

std::string runtime_text(const std::vector<std::string>& runtimes, const ProgramDescription& described,
                         const pe::Image& image, const std::wstring& program) {
  if (!runtimes.empty())
    return joined(runtimes, ", ", [&](const std::string& runtime) { return with_version(runtime, image, program); });
  if (described.allocation.empty()) return "none of its own";
  return "linked in, on the OS's heap" + linker_of(image);
}

std::string kind_of(const pe::Image& image) {
  if (inject::is_managed(image)) return ".NET";
  if (inject::is_go(image)) return "Go";
  if (inject::is_cygwin(image)) return "Cygwin";
  const std::string packer = packer_of(image);
  return packer.empty() ? "native" : "native, packed by " + packer + ": what it imports shows when it runs";
}

void add_imports(const pe::Image& image, const std::wstring& program, ProgramDescription& described) {
  std::vector<std::string> runtimes;
  pe::each_import(image, [&](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    char name[256];
    if (!image.read_text(descriptor.Name, name, sizeof name)) return true;
    Imports imports = {name, {}};
    pe::each_function(image, descriptor, [&imports](const char* function) {
      if (inject::is_allocation(function)) imports.functions.emplace_back(function);
    });
    add_once(runtimes, runtime_of(name));
    if (!imports.functions.empty()) described.allocation.push_back(std::move(imports));
    return true;
  });
  described.runtime = runtime_text(runtimes, described, image, program);
}

}  // namespace

std::string architecture_name(WORD machine) {
  if (machine == IMAGE_FILE_MACHINE_AMD64) return "x86-64";
  if (machine == IMAGE_FILE_MACHINE_I386) return "x86, 32-bit";
  if (machine == pe::machine_arm64) return "arm64";
  return "machine " + std::to_string(machine);
}

bool has_section(const pe::Image& image, std::string_view start) {
  bool found = false;
  each_section(image, [&](const IMAGE_SECTION_HEADER& section) {
    const auto* name = reinterpret_cast<const char*>(section.Name);
    found = std::string_view(name, sizeof section.Name).starts_with(start);
    return !found;
  });
  return found;
}

std::string packer_of(const pe::Image& image) {
  for (const Packer& packer : kPackers)
    if (has_section(image, packer.section)) return packer.name;
  bool noise = false;
  each_section(image, [&](const IMAGE_SECTION_HEADER& section) {
    noise = (section.Characteristics & IMAGE_SCN_MEM_EXECUTE) != 0 && reads_like_noise(image, section);
    return !noise;
  });
  return noise ? "something unknown" : "";
}

ProgramDescription describe(const pe::Image& image, const std::wstring& program) {
  ProgramDescription described;
  described.architecture = architecture_name(image.machine);
  described.kind = kind_of(image);
  described.heap_type = heap_type_in(manifest_of(image));
  described.control_flow_guard = (image.characteristics & IMAGE_DLLCHARACTERISTICS_GUARD_CF) != 0;
  described.movable = (image.characteristics & IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE) != 0;
  described.patched = has_section(image, kPatchSection);
  add_imports(image, program, described);
  return described;
}

}  // namespace rh::command
