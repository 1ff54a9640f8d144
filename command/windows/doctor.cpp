#include "doctor.h"

#include "anatomy.h"
#include "arrival.h"
#include "common/frame.h"
#include "common/message.h"
#include "common/report_lines.h"
#include "fresh_file.h"
#include "program.h"
#include "report_text.h"
#include "start.h"
#include "text.h"

#include <algorithm>
#include <cstdio>

namespace rh::command {

namespace {

using Json = nlohmann::ordered_json;

// Loading may wait for a slow disk; the program's own code does not run.
constexpr DWORD kPatience = 60'000;

// Where the program writes to.
std::wstring temporary_folder() {
  wchar_t folder[MAX_PATH + 1];
  const DWORD length = GetTempPathW(MAX_PATH + 1, folder);
  if (length == 0 || length > MAX_PATH)
    throw Failure(exit_failed, "there is no folder for temporary files");
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
    if (line.starts_with(start) && line[start.size()] != '{')
      list.push_back(line.substr(start.size()));
  }
  return list;
}

Json describe(const CommandLine& line, const Anatomy& anatomy) {
  Json json;
  json["path"] = narrow(line.program);
  json["architecture"] = anatomy.architecture;
  json["kind"] = anatomy.kind;
  json["runtime"] = anatomy.runtime;
  json["allocation"] = Json::object();
  for (const Imports& imports : anatomy.allocation)
    json["allocation"][imports.library] = imports.functions;
  json["control_flow_guard"] = anatomy.control_flow_guard;
  json["aslr"] = anatomy.movable;
  json["patched"] = anatomy.patched;
  return json;
}

class Examination {
 public:
  explicit Examination(const DoctorOptions& options)
      : options_(options), library_(library_to_use(options.library)) {
    inject::Path launcher;
    inject::module_path(nullptr, launcher);
    json_["command"] = {{"path", narrow(launcher.text)}, {"version", command_version}};
    json_["libraries"] = Json::array();
    for (const WORD machine :
         {WORD{IMAGE_FILE_MACHINE_AMD64}, WORD{IMAGE_FILE_MACHINE_I386}, inject::machine_arm64})
      add_library(machine);
  }

  void examine(const CommandLine& line) {
    const std::wstring folder = temporary_folder();
    const FreshFile report(folder, GENERIC_READ), errors(folder, GENERIC_READ);
    SetEnvironmentVariableW(L"REHEAP_DOCTOR", report.path().c_str());
    SetEnvironmentVariableW(L"REHEAP_VERBOSE", L"1");
    Suspended program(create_suspended(line, errors.path().c_str()));
    inject::Image image;
    if (inject::main_image(program.process(), image))
      json_["program"] = describe(line, command::examine(image, find_program(line.program)));
    inject::Path library;
    // Only a library that would end the program before its first instruction may be let in.
    if (inject::library_for(image.machine, library_.c_str(), library) && !is_reheap(library.text))
      return unreached(narrow(library.text) + " is no reheap.dll");
    const Arrival arrival;
    auto outcome =
        inject::enter(program.newcomer(), {library_.c_str(), start_helper, arrival.section()}, {});
    if (outcome.entered()) outcome = arrival.await(program, outcome, library_, kPatience);
    if (!outcome.entered()) return unreached(reason_of(outcome));
    json_["way"] = outcome.way == inject::Way::first_import ? "first import" : "loaded late";
    const auto code = program.wait(kPatience);
    json_["found"] = messages(read_file(errors.path().c_str()));
    judge(code, Json::parse(read_file(report.path().c_str()), nullptr, false));
  }

  bool reached() const { return json_.value("reached", false); }

  void print() const {
    const std::string text = options_.json ? report_json(json_) : report_text(json_);
    fwrite(text.data(), 1, text.size(), stdout);
  }

 private:
  void add_library(WORD machine) {
    inject::Path path;
    if (inject::library_for(machine, library_.c_str(), path))
      json_["libraries"].push_back(
          {{"path", narrow(path.text)}, {"architecture", architecture_name(machine)}});
  }

  void unreached(const std::string& reason) {
    json_["reached"] = false;
    json_["reason"] = reason;
  }

  void judge(std::optional<DWORD> code, const Json& report) {
    if (!code) return unreached("it had not answered after a minute, and was ended");
    if (!report.is_object())
      return unreached("the library did not answer; the process ended with exit code " +
                       std::to_string(*code));
    json_["report"] = report;
    const std::string version = report.value("version", std::string("unknown"));
    if (version != command_version)
      return unreached("the library is version " + version + " and this launcher " +
                       command_version + ": install both from one build");
    if (!report.value("overridden", true))
      return unreached("the library is there, but serves nothing");
    json_["reached"] = true;
  }

  const DoctorOptions& options_;
  std::wstring library_;
  Json json_;
};

// To show that the library loads and serves, any program will do: the launcher is at hand.
CommandLine bystander() {
  inject::Path launcher;
  inject::module_path(nullptr, launcher);
  CommandLine line;
  line.program = launcher.text;
  line.program_line = L"\"" + line.program + L"\" --version";
  return line;
}

}  // namespace

int doctor(const DoctorOptions& options, const CommandLine& line) {
  Examination examination(options);
  examination.examine(line.has_program ? line : bystander());
  examination.print();
  return examination.reached() ? exit_reached : exit_not_reached;
}

}  // namespace rh::command
