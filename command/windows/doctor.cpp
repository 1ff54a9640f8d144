#include "doctor.h"

#include "arrival.h"
#include "common/findings.h"
#include "common/message.h"
#include "fresh_file.h"
#include "program.h"
#include "program_description.h"
#include "start.h"
#include "text.h"

#include <algorithm>

namespace rh::command {
namespace {

using Json = Findings::Json;

// Loading may wait for a slow disk; the program's own code does not run.
constexpr DWORD kPatience = 60'000;

// Where the program writes to.
std::wstring temporary_folder() {
  wchar_t folder[MAX_PATH + 1];
  const DWORD length = GetTempPathW(MAX_PATH + 1, folder);
  if (length == 0 || length > MAX_PATH) throw Failure(exit_failed, "there is no folder for temporary files");
  return folder;
}

// The library's messages, without its account of itself, which is read from elsewhere.
Json messages(const std::string& text) {
  constexpr std::string_view start = "reheap: ";
  Json list = Json::array();
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    while (line.ends_with('\r')) line.pop_back();
    if (line.starts_with(start) && line[start.size()] != '{') list.push_back(line.substr(start.size()));
  }
  return list;
}

Json to_json(const CommandLine& line, const ProgramDescription& program) {
  Json json;
  json["path"] = narrow(line.program);
  json["architecture"] = program.architecture;
  json["kind"] = program.kind;
  json["runtime"] = program.runtime;
  json["allocation"] = Json::object();
  for (const Imports& imports : program.allocation) json["allocation"][imports.library] = imports.functions;
  json["heap_type"] = program.heap_type;
  json["control_flow_guard"] = program.control_flow_guard;
  json["aslr"] = program.movable;
  json["patched"] = program.patched;
  return json;
}

std::string launcher_path() {
  inject::Path launcher;
  inject::module_path(nullptr, launcher);
  return narrow(launcher.text);
}

class Examination {
 public:
  explicit Examination(const DoctorOptions& options)
      : options_(options), library_(library_to_use(options.library, options.hardened)) {
    for (const WORD machine : {WORD{IMAGE_FILE_MACHINE_AMD64}, WORD{IMAGE_FILE_MACHINE_I386}, pe::machine_arm64}) {
      inject::Path path;
      if (inject::library_for(machine, library_.c_str(), path))
        findings_.add_library(narrow(path.text), architecture_name(machine));
    }
  }

  void examine(const CommandLine& line) {
    const std::wstring folder = temporary_folder();
    const FreshFile report(folder, GENERIC_READ), errors(folder, GENERIC_READ);
    SetEnvironmentVariableW(L"REHEAP_DOCTOR", report.path().c_str());
    SetEnvironmentVariableW(L"REHEAP_VERBOSE", L"1");
    StartedProgram program(create_suspended(line, errors.path().c_str()));
    pe::Image image;
    if (pe::main_image(program.process(), image))
      findings_["program"] = to_json(line, describe(image, find_program(line.program)));
    inject::Path library;
    // Only a library that would end the program before its first instruction may be let in.
    if (inject::library_for(image.machine, library_.c_str(), library) && !is_reheap(library.text))
      return unreached(narrow(library.text) + " is no reheap.dll");
    const Arrival arrival;
    auto outcome = inject::enter(program.handles(), {library_.c_str(), start_helper, arrival.section()}, {});
    if (outcome.entered()) outcome = arrival.await(program, outcome, library_, kPatience);
    if (!outcome.entered()) return unreached(reason_of(outcome));
    findings_["way"] = outcome.entry == inject::Entry::first_import ? "first import" : "loaded late";
    const auto code = program.wait(kPatience);
    findings_["found"] = messages(read_file(errors.path().c_str()));
    judge(code, Json::parse(read_file(report.path().c_str()), nullptr, false));
  }

  int print() const { return findings_.print(options_.json); }

 private:
  void unreached(const std::string& reason) { findings_.set_unreached(reason); }

  void judge(std::optional<DWORD> code, const Json& report) {
    if (!code) return unreached("it had not answered after a minute, and was ended");
    if (!report.is_object())
      return unreached("the library did not answer; the process ended with exit code " + std::to_string(*code));
    if (!findings_.take_report(report)) return;
    if (!report.value("overridden", true)) return unreached("the library is there, but serves nothing");
    findings_.set_reached();
  }

  const DoctorOptions& options_;
  std::wstring library_;
  Findings findings_{launcher_path()};
};

// To show that the library loads and serves, any program will do: the launcher is at hand.
CommandLine bystander() {
  CommandLine line;
  line.program = wide(launcher_path());
  line.program_line = L"\"" + line.program + L"\" --version";
  return line;
}

}  // namespace

int doctor(const DoctorOptions& options, const CommandLine& line) {
  Examination examination(options);
  examination.examine(line.has_program ? line : bystander());
  return examination.print();
}

}  // namespace rh::command
