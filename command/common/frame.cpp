#include "frame.h"

#include "message.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <reheap/reheap.h>

namespace rh::command {
namespace {

// As CLI11 lays help out, but with the -- and what stands behind it.
class Help : public CLI::Formatter {
 public:
  explicit Help(std::string program) : program_(std::move(program)) {}

 private:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    const std::string& own = app->get_name();
    if (own == "run") return "Usage: reheap run [OPTIONS] -- " + program_ + " [ARGS...]\n";
    if (own == "doctor") return "Usage: reheap doctor [OPTIONS] [-- " + program_ + " [ARGS...]]\n";
    if (own == "patch" || own == "unpatch") return "Usage: reheap " + own + " [OPTIONS] FILE\n";
    return CLI::Formatter::make_usage(app, name);
  }

  std::string program_;
};

// A word that is not the command's own: most likely the program's, and the -- was forgotten.
[[noreturn]] void unexpected(int status, const CLI::App& command, const std::string& word) {
  const std::string name = command.get_name();
  const bool takes_program = name == "run" || name == "doctor";
  if (word.starts_with("-"))
    throw Failure(status,
                  "unknown option " + word + "; see reheap " + (command.get_parent() ? name + " " : "") + "--help");
  if (!takes_program) throw Failure(status, "unexpected: " + word + "; see reheap --help");
  throw Failure(status, "put -- before the program: reheap " + name + " -- " + word + " ...");
}

}  // namespace

#define TEXT_OF(number) #number
#define TEXT_OF_VALUE(number) TEXT_OF(number)
const char* const command_version =
    TEXT_OF_VALUE(RH_VERSION_MAJOR) "." TEXT_OF_VALUE(RH_VERSION_MINOR) "." TEXT_OF_VALUE(RH_VERSION_PATCH);
#undef TEXT_OF_VALUE
#undef TEXT_OF

void set_up(CLI::App& app, const std::string& program, const std::string& documentation) {
  app.formatter(std::make_shared<Help>(program));
  app.require_subcommand(0, 1);
  app.allow_windows_style_options(false);  // a path may begin with a slash there too
  app.set_version_flag("--version", std::string("reheap ") + command_version, "Print the version");
  app.footer("Documentation: " + documentation);
}

CLI::App& add_run(CLI::App& app, bool& require, bool& quiet) {
  auto* run = app.add_subcommand("run", "Run a program, and those it starts, on reheap");
  run->add_flag(require_flag, require, "Fail (125) rather than run a program that cannot be reached");
  run->add_flag(quiet_flag, quiet, "Say nothing about a program that cannot be reached");
  return *run;
}

CLI::App& add_doctor(CLI::App& app, const std::string& description, bool& json) {
  auto* doctor = app.add_subcommand("doctor", description);
  doctor->add_flag("--json", json, "Print the findings as one JSON object");
  return *doctor;
}

void add_library_option(CLI::App& command, const LibraryOption& option,
                        const std::function<void(const std::string&)>& keep) {
  const std::string name = to_string(option.name);
  CLI::Option* added = nullptr;
  if (option.value == Value::none) {
    added = command.add_flag_callback(name, [keep] { keep(""); }, option.description);
  } else {
    auto take = [&option, keep](const std::string& value) {
      if (!well_formed(option, value.c_str()))
        throw CLI::ValidationError(to_string(option.name),
                                   value + " is not possible; allowed: " + allowed_values(option));
      keep(value);
    };
    added = command.add_option_function<std::string>(name, take, option.description)->type_name(option.allowed);
  }
  if (option.value == Value::optional) added->expected(0, 1);
  added->group("The library's options (docs/options.md)");
}

// CLI11 says "--limit: 1 required SIZE missing".
static std::string what_is_wrong(const std::string& text) {
  const std::string before = ": 1 required ", behind = " missing";
  const size_t at = text.find(before);
  if (at == std::string::npos || !text.ends_with(behind)) return text;
  const std::string value = text.substr(at + before.size(), text.size() - behind.size() - at - before.size());
  return text.substr(0, at) + " needs a value: " + value;
}

bool parse(CLI::App& app, std::vector<std::string> words, int usage_status) {
  std::reverse(words.begin(), words.end());  // the form in which CLI11 takes a vector
  try {
    app.parse(words);
  } catch (const CLI::ExtrasError&) {
    const auto chosen = app.get_subcommands();
    const CLI::App& owner = chosen.empty() ? app : *chosen.front();
    const std::vector<std::string> extra = app.remaining(true);
    unexpected(usage_status, owner, extra.empty() ? "?" : extra.front());
  } catch (const CLI::Success& asked) {
    app.exit(asked);  // prints the help or the version
    return false;
  } catch (const CLI::ParseError& error) {
    throw Failure(usage_status, what_is_wrong(error.what()) + "; see reheap --help");
  }
  return true;
}

std::string chosen(const CLI::App& app, const std::string& program) {
  const auto subcommands = app.get_subcommands();
  if (subcommands.empty())
    throw Failure(exit_usage, "say what to do: reheap run -- " + program + ", reheap doctor, reheap --help");
  return subcommands.front()->get_name();
}

// What was printed may wait in a buffer until now.
static void deliver_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  throw Failure(exit_failed, "standard output cannot be written" + why);
}

int ended(const std::function<int()>& act) {
  try {
    const int status = act();
    deliver_output();
    return status;
  } catch (const Failure& failure) {
    say(failure.what());
    return failure.status;
  } catch (const std::exception& error) {
    say(error.what());
    return exit_failed;
  }
}

}  // namespace rh::command
