// Changing the file of a program, byte by byte.
#pragma once

#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <windows.h>

namespace launch_test {

inline IMAGE_NT_HEADERS* headers_of(char* file) {
  return reinterpret_cast<IMAGE_NT_HEADERS*>(file + reinterpret_cast<const IMAGE_DOS_HEADER*>(file)->e_lfanew);
}

inline IMAGE_DATA_DIRECTORY& directory(std::string& file, int number) {
  return headers_of(file.data())->OptionalHeader.DataDirectory[number];
}

// The section whose name begins so.
inline IMAGE_SECTION_HEADER* section(std::string& file, const std::string& name) {
  IMAGE_NT_HEADERS* headers = headers_of(file.data());
  IMAGE_SECTION_HEADER* sections = IMAGE_FIRST_SECTION(headers);
  for (int at = 0; at < headers->FileHeader.NumberOfSections; ++at)
    if (std::memcmp(sections[at].Name, name.data(), name.size()) == 0) return &sections[at];
  throw std::runtime_error("no section " + name);
}

inline void rename(IMAGE_SECTION_HEADER& section, const char* name) {
  strncpy(reinterpret_cast<char*>(section.Name), name, sizeof section.Name);
}

// Its import descriptors; they stand in .idata.
inline IMAGE_IMPORT_DESCRIPTOR* descriptors(std::string& file) {
  const IMAGE_SECTION_HEADER* data = section(file, ".idata");
  return reinterpret_cast<IMAGE_IMPORT_DESCRIPTOR*>(file.data() + data->PointerToRawData - data->VirtualAddress +
                                                    directory(file, IMAGE_DIRECTORY_ENTRY_IMPORT).VirtualAddress);
}

// It imports from another library than uses_short.exe does, by a name of at most as many letters.
inline void import_instead(std::string& file, const std::string& library) {
  const std::string before = "msvcr70d.dll";
  const std::size_t at = file.find(before);
  if (at == std::string::npos || library.size() > before.size()) throw std::runtime_error("it cannot be renamed");
  headers_of(file.data())->OptionalHeader.CheckSum = 0;
  for (std::size_t letter = 0; letter < before.size(); ++letter)
    file[at + letter] = letter < library.size() ? library[letter] : '\0';
}

// It imports from a library that is nowhere. Its checksum is not to tell.
inline void lose_dependency(std::string& file) {
  headers_of(file.data())->OptionalHeader.CheckSum = 0;
  const std::size_t at = file.find("KERNEL32.dll");
  if (at == std::string::npos) throw std::runtime_error("it has no such dependency");
  file[at] = 'x';
}

// As code looks that was compressed or encrypted.
inline void fill_with_noise(std::string& file, const IMAGE_SECTION_HEADER& section) {
  std::mt19937 random(1);
  for (DWORD at = 0; at < section.SizeOfRawData; ++at)
    file[section.PointerToRawData + at] = static_cast<char>(random());
}

}  // namespace launch_test
