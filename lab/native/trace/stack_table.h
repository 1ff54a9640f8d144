// The call stacks of several processes as one: what lies at the same place of the same code is one frame, wherever the
// process had it in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "trace/reader.h"

namespace trace {

class StackTable : public Notes {
 public:
  struct Module {
    uint64_t start;  // moved when the place had been another module's
    uint64_t bytes;
    uint64_t file_offset;
    std::string build_id;  // as it is, no digits
    std::string path;
    bool used;  // by a frame that was asked for
  };

  explicit StackTable(size_t processes) : processes_(processes) {}

  void take(uint32_t process, const Event& note) override;

  // Complete when all was read. The innermost frame first; a part of the file that is damaged may lack the outer ones.
  std::vector<uint32_t> frames_of(uint32_t process, uint32_t stack);

  const std::vector<Module>& modules() const { return modules_; }
  // The frames that were asked for, by their numbers.
  const std::vector<uint64_t>& addresses() const { return addresses_; }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;
  struct Node {
    uint64_t address = 0;  // from the module's start
    uint32_t module = kUnknown;
    uint32_t parent = 0;
  };
  struct Process {
    std::vector<Node> nodes;        // by the number of the stack
    std::vector<uint32_t> modules;  // by its number for them, the place in `modules_`
  };
  using Identity = std::tuple<std::string, std::string, uint64_t, uint64_t>;

  uint32_t module_like(const ModuleDescription& description);
  uint64_t place_for(uint64_t start, uint64_t bytes) const;

  std::vector<Process> processes_;
  std::vector<Module> modules_;
  std::map<Identity, uint32_t> known_;
  std::vector<uint64_t> addresses_;
  std::map<uint64_t, uint32_t> number_of_;  // of an address
};

}  // namespace trace
