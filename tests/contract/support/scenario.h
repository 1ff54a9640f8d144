// Scenarios: test bodies that need a process of their own (limits, figures about memory or threads, ways to exit). A
// scenario runs in a fresh start of the test program, under the same heap.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace contract {

struct Scenario {
  using Body = int (*)();
  Scenario(const char* name, Body body);
  const char* name;
  Body body;
  Scenario* next;
};

// SCENARIO(name) { ...; return 0; }
#define SCENARIO(name)                                                              \
  static int scenario_##name();                                                     \
  static const ::contract::Scenario scenario_entry_##name(#name, &scenario_##name); \
  static int scenario_##name()

enum class Resource { memory, data };  // RLIMIT_AS, RLIMIT_DATA; on Windows both mean commit

struct Limit {
  Resource resource;
  std::size_t bytes;
};

struct Conditions {
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<Limit> limits = {};
  double deadline = 30;  // seconds; then it is killed
  bool raised = false;   // runs with AT_SECURE set; not on Windows
};

// In a scenario: the smaller of its limits, 0 when there is none.
std::size_t memory_limit();

// At its start: enforces the limits that the system does not enforce itself.
void enforce_limits();

struct Outcome {
  int code = -1;   // of exit, -1 if it did not exit
  int signal = 0;  // or exception that ended it
  bool late = false;
  std::string out;
  std::string err;
  bool succeeded() const { return code == 0; }
  std::string describe() const;
};

class Running {
 public:
  // File descriptors; handles on Windows.
  Running(std::intptr_t process, std::intptr_t out, std::intptr_t err, double end);
  Outcome finish();

 private:
  std::intptr_t process_;
  std::intptr_t out_;
  std::intptr_t err_;
  double end_;
};

Running start(const std::string& scenario, const Conditions& conditions = {});
inline Outcome run(const std::string& scenario, const Conditions& conditions = {}) {
  return start(scenario, conditions).finish();
}

// Waits for a forked child until the deadline, then kills it. Returns the wait status, or -1 when late.
int await(int process, double deadline);

// Runs `body` in a forked child; true when it returned 0 within the deadline.
bool in_child(int (*body)(), double deadline = 30);

// Set in main: true while this process is a scenario, so that NEED ends it.
[[noreturn]] void scenario_failed(const char* file, int line, const char* condition, const char* detail);

// For code that cannot use the test framework: children, scenarios, their threads. Ends the process with a message;
// allocates nothing.
#define NEED(condition, ...)                                                    \
  do {                                                                          \
    if (!(condition)) {                                                         \
      char need_detail[256];                                                    \
      std::snprintf(need_detail, sizeof need_detail, " " __VA_ARGS__);          \
      ::contract::scenario_failed(__FILE__, __LINE__, #condition, need_detail); \
    }                                                                           \
  } while (0)

// EXPECT_SCENARIO(name, conditions...) inside a test.
#define EXPECT_SCENARIO(...)                                          \
  do {                                                                \
    const ::contract::Outcome outcome = ::contract::run(__VA_ARGS__); \
    EXPECT_TRUE(outcome.succeeded()) << outcome.describe();           \
    std::fputs(outcome.out.c_str(), stdout);                          \
  } while (0)

}  // namespace contract
