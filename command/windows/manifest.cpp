#include "manifest.h"

#include <algorithm>
#include <string_view>

namespace rh::command {
namespace {

constexpr WORD kManifest = 24;  // RT_MANIFEST
constexpr WORD kOfProgram = 1;  // CREATEPROCESS_MANIFEST_RESOURCE_ID
constexpr DWORD kMostBytes = 1 << 20;

// A tree of three levels: what it is, which one, and in which language. Offsets count from its root.
class Resources {
 public:
  explicit Resources(const pe::Image& image)
      : image_(image), root_(image.directory(IMAGE_DIRECTORY_ENTRY_RESOURCE).VirtualAddress) {}

  bool find(WORD type, WORD number, IMAGE_RESOURCE_DATA_ENTRY& found) const {
    constexpr DWORD branch = 1u << 31;
    if (root_ == 0) return false;
    const DWORD numbers = entry(0, type);
    const DWORD languages = (numbers & branch) != 0 ? entry(numbers & ~branch, number) : 0;
    const DWORD leaf = (languages & branch) != 0 ? entry(languages & ~branch, kAny) : 0;
    return leaf != 0 && (leaf & branch) == 0 && image_.read(root_ + leaf, &found, sizeof found);
  }

 private:
  static constexpr DWORD kAny = MAXDWORD;

  // Where an entry of a directory leads to, or 0.
  DWORD entry(DWORD directory, DWORD id) const {
    IMAGE_RESOURCE_DIRECTORY header;
    if (!image_.read(root_ + directory, &header, sizeof header)) return 0;
    const DWORD count = DWORD{header.NumberOfNamedEntries} + header.NumberOfIdEntries;
    for (DWORD at = 0; at < count; ++at) {
      DWORD id_and_place[2];
      const DWORD place = root_ + directory + DWORD{sizeof header} + at * DWORD{sizeof id_and_place};
      if (!image_.read(place, id_and_place, sizeof id_and_place)) return 0;
      if (id == kAny || id_and_place[0] == id) return id_and_place[1];
    }
    return 0;
  }

  const pe::Image& image_;
  DWORD root_;
};

// Without the space around it. What is no word names no kind of heap.
std::string word_in(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == text.npos) return {};
  text = text.substr(begin, text.find_last_not_of(space) + 1 - begin);
  const auto is_letter = [](char one) { return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z'); };
  return std::all_of(text.begin(), text.end(), is_letter) ? std::string(text) : std::string();
}

std::string without_comments(std::string text) {
  constexpr std::string_view open = "<!--", close = "-->";
  for (std::size_t at = 0; (at = text.find(open, at)) != text.npos;) {
    const std::size_t end = text.find(close, at + open.size());
    text.erase(at, end == text.npos ? end : end + close.size() - at);
  }
  return text;
}

// Whether what stands between '<' and '>' is this tag, with a prefix or not.
bool is_tag(std::string_view tag, std::string_view name) {
  const std::size_t end = tag.find_first_of(" \t\r\n/");
  tag = tag.substr(0, end);
  const std::size_t prefix = tag.find(':');
  return tag.substr(prefix == tag.npos ? 0 : prefix + 1) == name;
}

}  // namespace

std::string manifest_of(const pe::Image& image) {
  IMAGE_RESOURCE_DATA_ENTRY data;
  if (!Resources(image).find(kManifest, kOfProgram, data) || data.Size > kMostBytes) return {};
  std::string text(data.Size, '\0');
  if (!image.read(data.OffsetToData, text.data(), text.size())) return {};
  // Some are in UTF-16. All that is looked for is ASCII.
  std::erase(text, '\0');
  return text;
}

std::string heap_type_in(const std::string& manifest) {
  const std::string text = without_comments(manifest);
  for (std::size_t at = 0; (at = text.find('<', at)) != text.npos; ++at) {
    const std::size_t end = text.find('>', at);
    if (end == text.npos) return {};
    if (is_tag(std::string_view(text).substr(at + 1, end - at - 1), "heapType"))
      return word_in(std::string_view(text).substr(end + 1, text.find('<', end) - end - 1));
  }
  return {};
}

}  // namespace rh::command
