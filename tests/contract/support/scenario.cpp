#include "support/scenario.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "support/process.h"

namespace contract {
namespace {

constinit Scenario* first_scenario = nullptr;

}  // namespace

double patience(double deadline) {
  const char* text = std::getenv("CONTRACT_PATIENCE");
  const double most = text ? std::strtod(text, nullptr) : deadline;
  return most < deadline ? most : deadline;
}

Scenario::Scenario(const char* scenario_name, Body scenario_body)
    : name(scenario_name), body(scenario_body), next(first_scenario) {
  first_scenario = this;
}

int run_scenario_here(const char* name) {
  for (const Scenario* scenario = first_scenario; scenario; scenario = scenario->next)
    if (std::strcmp(scenario->name, name) == 0) return scenario->body();
  std::fprintf(stderr, "no scenario is called %s\n", name);
  return 124;
}

std::string Outcome::describe() const {
  std::string text = late          ? "did not end in time and was killed"
                     : signal != 0 ? "ended by signal " + std::to_string(signal)
                                   : "exit status " + std::to_string(code);
  if (!out.empty()) text += "\nstdout: " + out;
  if (!err.empty()) text += "\nstderr: " + err;
  return text;
}

void scenario_failed(const char* file, int line, const char* condition, const char* detail) {
  char text[640];
  const int length = std::snprintf(text, sizeof text, "%s:%d: not so: %s%s\n", file, line, condition, detail);
  const auto shown =
      static_cast<std::size_t>(length) < sizeof text ? static_cast<std::size_t>(length) : sizeof text - 1;
  if (write(2, text, shown) < 0) _exit(2);
  _exit(1);
}

}  // namespace contract
