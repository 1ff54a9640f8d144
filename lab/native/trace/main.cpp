// reheap-trace: looks at recorded traces, cuts and merges them, and prepares them for replay.
#include <cstdio>
#include <exception>
#include <string_view>

#include "trace/commands.h"
#include "trace/same_file.h"

namespace trace {
namespace {

constexpr char kUsage[] =
    "usage: reheap-trace info FILE...                      what was allocated, as JSON\n"
    "       reheap-trace cut FILE -o OUT [--from-time S] [--to-time S] [--from-event N] "
    "[--to-event N]\n"
    "       reheap-trace merge FILE... -o OUT              one trace of several processes\n"
    "       reheap-trace export FILE... [--format csv|jsonl] [-o OUT]\n"
    "       reheap-trace compile FILE... -o OUT            what reheap-replay runs\n"
    "       reheap-trace sites FILE...                     what each call stack allocated, as JSON\n"
    "Times are seconds from the trace's start. Exit status: 0; 2 for wrong arguments;\n"
    "3 when a file is damaged and the rest of it was used; 125 when nothing could be done.\n";

int run(std::string_view command, const std::vector<std::string>& arguments) {
  if (command == "info") return info(arguments);
  if (command == "cut") return cut(arguments);
  if (command == "merge") return merge(arguments);
  if (command == "export") return export_events(arguments);
  if (command == "compile") return compile(arguments);
  if (command == "sites") return sites(arguments);
  throw WrongUse{"there is no command '" + std::string(command) + "'"};
}

int report(const std::string& what, int status) {
  std::fprintf(stderr, "reheap-trace: %s\n", what.c_str());
  return status;
}

// What stands in a buffer still may not fit on the disk.
int finish(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return report("standard output could not be written whole", kExitFailed);
}

}  // namespace

std::string take_option(std::vector<std::string>& arguments, const std::string& name) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(name + "=")) {
      const std::string value = arguments[i].substr(name.size() + 1);
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
    if (arguments[i] != name) continue;
    if (i + 1 == arguments.size()) throw WrongUse{name + " needs a value"};
    const std::string value = arguments[i + 1];
    const auto at = arguments.begin() + static_cast<std::ptrdiff_t>(i);
    arguments.erase(at, at + 2);
    return value;
  }
  return {};
}

void only_files(const std::vector<std::string>& arguments, size_t least) {
  for (const std::string& argument : arguments)
    if (argument.starts_with("-")) throw WrongUse{"there is no option " + argument};
  if (arguments.size() < least)
    throw WrongUse{least == 1 ? "a trace file is needed" : "two trace files or more are needed"};
}

void keep_apart(const std::vector<std::string>& files, const std::string& out) {
  for (const std::string& file : files)
    if (is_same_file(file, out)) throw WrongUse{"-o must not name a file that is read"};
}

int tell(const Damage& damage) {
  for (const std::string& what : damage.told) report(what, 0);
  if (damage.count > damage.told.size())
    report("and " + std::to_string(damage.count - damage.told.size()) + " more like these", 0);
  return damage.count == 0 ? 0 : kExitDamaged;
}

std::string json_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    char coded[8];
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
    else if (std::snprintf(coded, sizeof coded, "\\u%04x", c) > 0)
      result += coded;
  }
  return result + "\"";
}

std::string json_damage(const Damage& damage) {
  std::string result = "\"damage\":{\"count\":" + std::to_string(damage.count) + ",\"told\":[";
  for (size_t i = 0; i < damage.told.size(); ++i) result += (i ? "," : "") + json_text(damage.told[i]);
  return result + "]}";
}

int main(int count, char** arguments) {
  const std::string command = count > 1 ? arguments[1] : "--help";
  if (command == "--help" || command == "-h") {
    std::fputs(kUsage, count > 1 ? stdout : stderr);
    return count > 1 ? finish(0) : kExitUsage;
  }
  if (command == "--version") return std::puts("reheap-trace " REHEAP_LAB_VERSION), finish(0);
  try {
    return finish(run(command, {arguments + 2, arguments + count}));
  } catch (const WrongUse& wrong) {
    report(wrong.what, 0);
    std::fputs(kUsage, stderr);
    return kExitUsage;
  } catch (const Unreadable& unreadable) {
    return report(unreadable.what, kExitFailed);
  } catch (const std::exception& error) {
    return report(error.what(), kExitFailed);
  }
}

}  // namespace trace

int main(int count, char** arguments) { return trace::main(count, arguments); }
