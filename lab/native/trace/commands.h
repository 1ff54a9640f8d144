// What `reheap-trace` can do; each takes the arguments behind its name and returns the exit status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/reader.h"

namespace trace {

inline constexpr int kExitUsage = 2;
inline constexpr int kExitDamaged = 3;  // something could not be read; the rest was used
inline constexpr int kExitFailed = 125;

// Wrong arguments, in words.
struct WrongUse {
  std::string what;
};

int info(const std::vector<std::string>& arguments);
int cut(const std::vector<std::string>& arguments);
int merge(const std::vector<std::string>& arguments);
int export_events(const std::vector<std::string>& arguments);
int compile(const std::vector<std::string>& arguments);
int sites(const std::vector<std::string>& arguments);

// The value of --NAME=VALUE or --NAME VALUE taken out of `arguments`; empty when it is not there.
std::string take_option(std::vector<std::string>& arguments, const std::string& name);
// What is left must be files, `least` or more.
void only_files(const std::vector<std::string>& arguments, size_t least = 1);
// `out` is written while they are read, so it must be none of them, by whatever name.
void keep_apart(const std::vector<std::string>& files, const std::string& out);

// Tells on stderr what could not be read. The exit status that says so.
int tell(const Damage& damage);
// Reads the files once, and prints what a Report found.
template <typename Report> int report_on(const std::vector<std::string>& paths) {
  only_files(paths);
  Damage damage;
  auto files = open_files(paths, damage);
  Report report(files, damage);
  report.run();
  report.print();
  return tell(damage);
}

std::string json_text(const std::string& text);  // in quotes
std::string json_damage(const Damage& damage);   // "damage":{...}

}  // namespace trace
