#include "doctor.h"

#include "common/findings.h"
#include "common/joined.h"
#include "common/message.h"
#include "early/library.h"
#include "early/program.h"
#include "probe.h"
#include "symbols.h"

#include <cstdlib>
#include <filesystem>
#include <functional>

namespace rh::command {
namespace {

using Json = Findings::Json;

// A program to be examined, and the command line that starts it.
struct Subject {
  Program program;
  std::vector<std::string> chain;  // the program's, and before it a script's that env led on from
  std::vector<std::string> words;

  std::vector<char*> arguments() {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }
};

void look_into(Subject& subject, Str name) {
  subject.program = Program();
  check(inspect(name, getenv("PATH"), subject.program));
  for (std::size_t at = 0; at < subject.program.chain_length; ++at)
    subject.chain.push_back(to_string(subject.program.chain[at]));
}

Subject subject_of(char* const* arguments) {
  Subject subject;
  for (char* const* argument = arguments; *argument; ++argument) subject.words.emplace_back(*argument);
  look_into(subject, arguments[0]);
  if (subject.program.by_shell) {
    subject.words.front() = to_string(subject.program.path());
    subject.words.insert(subject.words.begin(), to_string(subject.program.image()));
  }
  // env only leads on: what is asked about is the program it becomes.
  if (const Str name = started_by_env(subject.program); !name.empty()) {
    subject.words.front() = to_string(subject.program.path());
    subject.words.insert(subject.words.begin(), to_string(name));
    look_into(subject, name);
  }
  return subject;
}

const char* linkage(const Program& program) {
  if (!program.elf.valid) return "unknown";
  return program.obstacle == Obstacle::static_program ? "static" : "dynamic";
}

Json describe(const Subject& subject) {
  const Program& program = subject.program;
  Json json;
  json["path"] = to_string(program.path());
  json["chain"] = subject.chain;
  json["architecture"] = program.elf.valid ? Json(to_string(name_of(program.elf.architecture))) : Json();
  json["linkage"] = linkage(program);
  json["loader"] = program.elf.loader.empty() ? Json() : Json(to_string(program.elf.loader));
  json["ld_preload_honoured"] = program.obstacle == Obstacle::none;
  json["carries"] = known_allocators_in(to_string(program.image()));
  return json;
}

bool same_file(const std::string& one, const std::string& other) {
  std::error_code ignored;
  return std::filesystem::equivalent(one, other, ignored);
}

// What serves malloc instead, in words.
std::string other_server(const Subject& subject, const Json& report) {
  std::string server = report.value("malloc_served_by", std::string());
  if (server.empty()) return "what serves malloc there is unknown; it is not libreheap";
  // The loader knows the program itself by its argv[0] alone.
  const std::string image = to_string(subject.program.image());
  const bool itself = server == subject.words.front() || same_file(server, image);
  if (itself) server = image;
  std::string text = "malloc is served by " + server;
  const std::vector<std::string> known = known_allocators_in(server);
  if (!known.empty()) text += " (" + joined(known, ", ", std::identity()) + ")";
  return text + (itself ? ": the program brings its own malloc" : ", not by libreheap");
}

std::string start_path(const Subject& subject) {
  return to_string(subject.program.by_shell ? subject.program.image() : subject.program.path());
}

class Examination {
 public:
  Examination(const DoctorOptions& options, const Libraries& libraries) : options_(options), libraries_(libraries) {
    for (std::size_t at = 0; at < libraries.count; ++at)
      findings_.add_library(to_string(libraries.found[at].path), to_string(name_of(libraries.found[at].architecture)));
  }

  void examine(Subject subject) {
    findings_["program"] = describe(subject);
    const Program& program = subject.program;
    if (program.obstacle != Obstacle::none) return unreached(to_string(program.reason));
    if (!program.elf.valid)
      return unreached(to_string(program.image()) +
                       " is no ELF program that can be read, so what it would start is unknown");
    const Library* library = libraries_.for_architecture(program.elf.architecture);
    if (!library)
      return unreached("it is for " + to_string(name_of(program.elf.architecture)) +
                       ", and no libreheap.so for that was found");
    const ProbeResult result =
        probe(start_path(subject), program.elf.loader, subject.arguments().data(), library->path, options_.settings);
    if (!result.report) return unreached(result.failure);
    const bool same_version = findings_.take_report(*result.report);
    if (!result.report->value("overridden", false)) return unreached(other_server(subject, *result.report));
    if (same_version) findings_.set_reached();
  }

  void unreached(const std::string& reason) { findings_.set_unreached(reason); }

  int print() const { return findings_.print(options_.json); }

 private:
  const DoctorOptions& options_;
  const Libraries& libraries_;
  Findings findings_{to_string(command_path())};
};

// Any dynamic program will do to show that the library loads and serves; these are everywhere.
constexpr const char* bystanders[] = {"true", "cat", "env", "sh"};

void examine_installation(Examination& examination, const Libraries& libraries) {
  for (const char* name : bystanders) {
    std::string word = name;
    char* arguments[] = {word.data(), nullptr};
    try {
      Subject subject = subject_of(arguments);
      const Program& program = subject.program;
      if (program.obstacle != Obstacle::none || !program.elf.valid) continue;
      if (libraries.for_architecture(program.elf.architecture)) return examination.examine(std::move(subject));
    } catch (const Failure&) {
      continue;  // not on PATH
    }
  }
  examination.unreached("no program was found to try the library with (tried true, cat, env and sh on PATH); "
                        "name one: reheap doctor -- CMD");
}

}  // namespace

int doctor(const DoctorOptions& options, char* const* arguments) {
  Libraries libraries;
  check(find_libraries(options.settings, getenv("REHEAP_LIBRARY"), nullptr, libraries));
  Examination examination(options, libraries);
  if (arguments)
    examination.examine(subject_of(arguments));
  else
    examine_installation(examination, libraries);
  return examination.print();
}

}  // namespace rh::command
