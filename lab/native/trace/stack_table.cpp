#include "trace/stack_table.h"

#include <algorithm>

namespace trace {
namespace {

// A damaged number must not cost memory without end.
constexpr uint32_t kMostStacks = 1u << 24;
constexpr uint32_t kMostModules = 1u << 20;
constexpr uint64_t kMostModuleBytes = uint64_t{1} << 47;

constexpr uint64_t kMovedTo = uint64_t{1} << 60;  // no program has code there

// As the file is called: the kernel writes a newline in another way.
std::string file_name(std::string_view path) {
  constexpr std::string_view kNewline = "\\012";
  std::string name(path);
  for (size_t i = 0; (i = name.find(kNewline, i)) != std::string::npos;) name.replace(i, kNewline.size(), "\n");
  return name;
}

template <typename Value> Value& at(std::vector<Value>& row, uint32_t number, const Value& otherwise) {
  if (number >= row.size()) row.resize(number + 1, otherwise);
  return row[number];
}

}  // namespace

void StackTable::take(uint32_t process, const Event& note) {
  Process& of = processes_[process];
  if (note.kind == Kind::kFrame && note.stack < kMostStacks)
    at(of.nodes, note.stack, Node{}) = {note.address, note.module, note.parent};
  if (note.kind == Kind::kModule && note.module < kMostModules && note.description->bytes < kMostModuleBytes)
    at(of.modules, note.module, kUnknown) = module_like(*note.description);
}

uint32_t StackTable::module_like(const ModuleDescription& description) {
  const uint64_t bytes = description.bytes;
  const Identity identity(description.path, description.build_id, description.file_offset, bytes);
  const auto [known, fresh] = known_.try_emplace(identity, static_cast<uint32_t>(modules_.size()));
  // Memory of no file is what it is where it is.
  if (!fresh && (!description.path.empty() || modules_[known->second].start == description.start)) return known->second;
  known->second = static_cast<uint32_t>(modules_.size());
  modules_.push_back({place_for(description.start, bytes), bytes, description.file_offset,
                      std::string(description.build_id), file_name(description.path), false});
  return known->second;
}

uint64_t StackTable::place_for(uint64_t start, uint64_t bytes) const {
  uint64_t moved = kMovedTo;
  bool free = true;
  for (const Module& module : modules_) {
    free = free && (start >= module.start + module.bytes || module.start >= start + bytes);
    if (module.start >= kMovedTo) moved = std::max(moved, module.start + module.bytes);
  }
  return free ? start : moved;
}

std::vector<uint32_t> StackTable::frames_of(uint32_t process, uint32_t stack) {
  const Process& of = processes_[process];
  std::vector<uint32_t> frames;
  while (stack > kEmptyStack && stack < of.nodes.size()) {
    const Node& node = of.nodes[stack];
    if (node.module >= of.modules.size() || of.modules[node.module] == kUnknown) break;
    Module& module = modules_[of.modules[node.module]];
    module.used = true;
    const uint64_t address = module.start + node.address;
    const auto [found, fresh] = number_of_.try_emplace(address, static_cast<uint32_t>(addresses_.size()));
    if (fresh) addresses_.push_back(address);
    frames.push_back(found->second);
    stack = node.parent;  // less than it was: the decoder sees to that
  }
  return frames;
}

}  // namespace trace
