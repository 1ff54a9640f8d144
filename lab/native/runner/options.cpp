#include "runner/options.h"

#include <getopt.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "runner/failure.h"

namespace runner {

const char kHelp[] = "Runs one command, follows its children, and writes what they cost as lines of JSON.\n"
                     "\n"
                     "  reheap-runner --out FILE [OPTION]... -- COMMAND ARGUMENTS...\n"
                     "\n"
                     "  --out FILE           where the lines go\n"
                     "  --env NAME=VALUE     set a variable for the command\n"
                     "  --unset NAME         remove one\n"
                     "  --cwd DIR            run the command there\n"
                     "  --stdin FILE         read standard input from FILE; likewise --stdout, --stderr\n"
                     "  --timeout SECONDS    kill the command and all it started after that time\n"
                     "  --sample-ms N        look at memory and time every N milliseconds (10; 0 is never)\n"
                     "  --profile HZ         say in which module the time goes, by HZ samples for each second of "
                     "it\n"
                     "  --profile-by-stops   stop threads to see where they are, even where the kernel has a "
                     "sampler\n"
                     "  --events NAMES       count these where the kernel does, by commas: instructions, cycles, "
                     "task-clock,\n"
                     "                       page-faults (Linux)\n"
                     "  --account            name every program of every process, with what it used; needs ptrace, "
                     "except with --watch\n"
                     "  --count-calls        count the memory calls to the system; slows the command down; accounts "
                     "too\n"
                     "  --watch NAME         tell the figures of the first process of that name, not of all\n"
                     "  --modules            name the files that the command loads (Windows)\n"
                     "\n"
                     "SIGTERM and SIGINT are passed on to the command. Exit status: 0 when the command was "
                     "measured,\n"
                     "whatever its own status was; 2 for wrong options; 125 when the runner could not do its part;\n"
                     "126 and 127 when the command cannot be executed, or is not there.\n";

namespace {

[[noreturn]] void reject(const std::string& what) { throw Failure(kUsage, what + "\nSee reheap-runner --help."); }

int whole_number(const char* name, std::string_view text, int least, int most) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    reject(std::string(name) + " takes a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
           ", not '" + std::string(text) + "'");
  return value;
}

double seconds(const char* text) {
  char* end = nullptr;
  double value = std::strtod(text, &end);
  if (end == text || *end || !std::isfinite(value) || value <= 0 || value > 1e9)
    reject(std::string("--timeout takes a number of seconds above 0, not '") + text + "'");
  return value;
}

std::string assignment(const char* text) {
  std::string_view given(text);
  size_t equals = given.find('=');
  if (equals == 0 || equals == given.npos) reject(std::string("--env takes NAME=VALUE, not '") + text + "'");
  return text;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t comma; (comma = text.find(',')) != text.npos; text.remove_prefix(comma + 1))
    words.emplace_back(text.substr(0, comma));
  words.emplace_back(text);
  return words;
}

struct Known {
  const char* name;
  int argument;
  void (*take)(Options& options, const char* value);
};

const Known kOptions[] = {
    {"out", required_argument, [](Options& options, const char* value) { options.out = value; }},
    {"env", required_argument, [](Options& options, const char* value) { options.set.push_back(assignment(value)); }},
    {"unset", required_argument, [](Options& options, const char* value) { options.unset.push_back(value); }},
    {"cwd", required_argument, [](Options& options, const char* value) { options.directory = value; }},
    {"stdin", required_argument, [](Options& options, const char* value) { options.input = value; }},
    {"stdout", required_argument, [](Options& options, const char* value) { options.output = value; }},
    {"stderr", required_argument, [](Options& options, const char* value) { options.errors = value; }},
    {"timeout", required_argument, [](Options& options, const char* value) { options.timeout = seconds(value); }},
    {"sample-ms", required_argument,
     [](Options& options, const char* value) { options.sample_ms = whole_number("--sample-ms", value, 0, 60'000); }},
    {"profile", required_argument,
     [](Options& options, const char* value) { options.profile_hz = whole_number("--profile", value, 1, 10'000); }},
    {"profile-by-stops", no_argument, [](Options& options, const char*) { options.profile_by_stops = true; }},
    {"events", required_argument, [](Options& options, const char* value) { options.events = words_of(value); }},
    {"account", no_argument, [](Options& options, const char*) { options.account = true; }},
    {"count-calls", no_argument, [](Options& options, const char*) { options.count_calls = true; }},
    {"watch", required_argument, [](Options& options, const char* value) { options.watch = value; }},
    {"modules", no_argument, [](Options& options, const char*) { options.modules = true; }},
    {"help", no_argument, [](Options& options, const char*) { options.help = true; }},
    {"version", no_argument, [](Options& options, const char*) { options.version = true; }},
};

// The same for getopt, which gives an option's place in the table.
std::vector<option> names() {
  std::vector<option> all;
  for (const Known& known : kOptions)
    all.push_back({known.name, known.argument, nullptr, static_cast<int>(&known - kOptions)});
  all.push_back({});
  return all;
}

}  // namespace

Options parse(int count, char** words) {
  Options options;
  // '+': what stands after the first word that is no option belongs to the command.
  const std::vector<option> known = names();
  for (int place; (place = getopt_long(count, words, "+", known.data(), nullptr)) != -1;) {
    if (place == '?') reject("wrong options");  // getopt has said which
    kOptions[place].take(options, optarg);
  }
  if (options.help || options.version) return options;
  if (options.out.empty()) reject("--out FILE is missing");
  if (optind >= count) reject("there is no command: give it after --");
  if (options.count_calls && options.profile_hz > 0)
    reject("--count-calls stops the command at every call, so it does not go with --profile");
  options.command.assign(words + optind, words + count);
  options.command.push_back(nullptr);
  return options;
}

}  // namespace runner
