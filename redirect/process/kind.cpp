#include "kind.h"

#include "redirect/crt/names.h"
#include "redirect/heap/names.h"

namespace rh::inject {
namespace {

bool equal(const char* one, const char* other) {
  for (; *one != 0 && *one == *other; ++one) ++other;
  return *one == *other;
}

bool begins(const char* text, const char* start) {
  for (; *start != 0; ++text, ++start)
    if (*text != *start) return false;
  return true;
}

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

bool equal_names(const char* one, const wchar_t* other) {
  for (; *other != 0 && lower(*one) == static_cast<char>(*other); ++one) ++other;
  return lower(*one) == static_cast<char>(*other);
}

// What is imported beside the functions that are replaced: the OS's heap as kernel32 names it, and what calls malloc.
constexpr const char* kCallers[] = {"HeapAlloc",  "HeapReAlloc", "HeapFree", "HeapSize",
                                    "HeapCreate", "_strdup",     "_wcsdup"};

// operator new and delete, as Microsoft's compiler names them for every processor.
constexpr const char* kOperators[] = {"??2@", "??3@", "??_U@", "??_V@"};

// The names of all functions stand in a Go program's constants, stripped or not, this one's among them.
constexpr char kGoAllocator[] = "runtime.mallocgc";

bool holds(const char* bytes, size_t length, const char* mark) {
  for (size_t at = 0; at < length; ++at)
    if (bytes[at] == *mark && begins(bytes + at, mark)) return true;
  return false;
}

bool names_go_allocator(const pe::Image& image, const IMAGE_SECTION_HEADER& section) {
  constexpr DWORD others = IMAGE_SCN_MEM_WRITE | IMAGE_SCN_MEM_EXECUTE | IMAGE_SCN_MEM_DISCARDABLE;
  if ((section.Characteristics & others) != 0) return false;
  // Pieces overlap by a mark's length, and end with zero.
  constexpr DWORD piece = 4000, overlap = sizeof kGoAllocator;
  char bytes[piece + overlap + 1];
  for (DWORD at = 0; at < section.Misc.VirtualSize; at += piece) {
    const DWORD rest = section.Misc.VirtualSize - at;
    const DWORD length = rest < piece + overlap ? rest : piece + overlap;
    if (!image.read(section.VirtualAddress + at, bytes, length)) return false;
    bytes[length] = 0;
    if (holds(bytes, length, kGoAllocator)) return true;
  }
  return false;
}

// Go's linker writes its symbol table into a section of its own, empty when stripped.
bool is_go_symbols(const pe::Image&, const IMAGE_SECTION_HEADER& section) {
  return begins(reinterpret_cast<const char*>(section.Name), ".symtab");
}

using Judge = bool (*)(const pe::Image&, const IMAGE_SECTION_HEADER&);

bool any_section(const pe::Image& image, Judge judge) {
  bool found = false;
  each_section(image, [&](const IMAGE_SECTION_HEADER& section) {
    found = judge(image, section);
    return !found;
  });
  return found;
}

}  // namespace

bool is_managed(const pe::Image& image) {
  const IMAGE_DATA_DIRECTORY where = image.directory(IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR);
  constexpr DWORD flags_at = offsetof(IMAGE_COR20_HEADER, Flags);
  DWORD flags = 0;
  return where.VirtualAddress != 0 && image.read(where.VirtualAddress + flags_at, &flags, sizeof flags) &&
         (flags & COMIMAGE_FLAGS_ILONLY) != 0;
}

bool is_go(const pe::Image& image) {
  // The cheap question first: no other linker is known to name a section so.
  return any_section(image, is_go_symbols) && any_section(image, names_go_allocator);
}

const wchar_t* const kCygwinLibraries[] = {L"cygwin1.dll", L"msys-2.0.dll", nullptr};

bool is_cygwin_library(const char* name) {
  for (const wchar_t* const* known = kCygwinLibraries; *known != nullptr; ++known)
    if (equal_names(name, *known)) return true;
  return false;
}

bool is_cygwin(const pe::Image& image) {
  bool found = false;
  each_import(image, [&](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    // At once, which is quicker in another process, unless the image ends first.
    char name[32] = {};
    const bool read =
        image.read(descriptor.Name, name, sizeof name - 1) || image.read_text(descriptor.Name, name, sizeof name);
    found = read && is_cygwin_library(name);
    return !found;
  });
  return found;
}

bool is_allocation(const char* name) {
  for (const char* known : kCallers)
    if (equal(name, known)) return true;
  for (const redirect::Export* known = redirect::exports_begin(); known != redirect::exports_end(); ++known)
    if (equal(name, known->name)) return true;
  for (size_t role = 0; role < heaps::kRoles; ++role)
    if (equal(name, heaps::export_of(static_cast<heaps::Role>(role)).name)) return true;
  for (const char* start : kOperators)
    if (begins(name, start)) return true;
  return false;
}

bool imports_allocation(const pe::Image& image) {
  bool found = false;
  each_import(image, [&](const IMAGE_IMPORT_DESCRIPTOR& descriptor) {
    each_function(image, descriptor, [&](const char* name) { found = found || is_allocation(name); });
    return !found;
  });
  return found;
}

}  // namespace rh::inject
