// `reheap-trace export`: every event in the order of time, as CSV or as lines of JSON.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "trace/commands.h"

namespace trace {
namespace {

using Number = unsigned long long;

const char* name_of(Kind kind) {
  switch (kind) {
  case Kind::kMalloc: return "malloc";
  case Kind::kCalloc: return "calloc";
  case Kind::kAligned: return "aligned";
  case Kind::kFree:
  case Kind::kFreeMeasured: return "free";
  case Kind::kRealloc: return "realloc";
  case Kind::kFailed: return "failed";
  case Kind::kThreadStart: return "thread_start";
  case Kind::kThreadEnd: return "thread_end";
  case Kind::kStack:
  case Kind::kFrame:
  case Kind::kModule: break;
  }
  return "?";
}

struct Line {
  Number time, begin;
  Number process;
  unsigned thread;
  const Event* event;
};

constexpr char kColumns[] = "time_ns,begin_ns,process,thread,kind,address,old_address,size,alignment,resident_kib\n";

void print_csv(std::FILE* out, const Line& line) {
  const Event& event = *line.event;
  std::fprintf(out, "%llu,%llu,%llu,%u,%s,", line.time, line.begin, line.process, line.thread, name_of(event.kind));
  std::fprintf(out, event.address ? "0x%llx," : ",", Number{event.address});
  std::fprintf(out, event.old_address ? "0x%llx," : ",", Number{event.old_address});
  const bool sized = event.kind <= Kind::kAligned || event.kind == Kind::kRealloc || event.kind == Kind::kFailed;
  std::fprintf(out, sized ? "%llu," : ",", Number{event.size});
  std::fprintf(out, event.alignment ? "%llu," : ",", Number{event.alignment});
  std::fprintf(out, event.kind == Kind::kFreeMeasured ? "%llu\n" : "\n", Number{event.resident_kib});
}

void print_json(std::FILE* out, const Line& line) {
  const Event& event = *line.event;
  std::fprintf(out, "{\"time_ns\":%llu,\"process\":%llu,\"thread\":%u,\"kind\":\"%s\"", line.time, line.process,
               line.thread, name_of(event.kind));
  if (event.kind == Kind::kRealloc)
    std::fprintf(out, ",\"begin_ns\":%llu,\"old_address\":%llu", line.begin, Number{event.old_address});
  if (event.kind <= Kind::kRealloc) std::fprintf(out, ",\"address\":%llu", Number{event.address});
  if (event.kind <= Kind::kAligned || event.kind == Kind::kRealloc || event.kind == Kind::kFailed)
    std::fprintf(out, ",\"size\":%llu", Number{event.size});
  if (event.alignment) std::fprintf(out, ",\"alignment\":%llu", Number{event.alignment});
  if (event.kind == Kind::kFreeMeasured) std::fprintf(out, ",\"resident_kib\":%llu", Number{event.resident_kib});
  std::fputs("}\n", out);
}

}  // namespace

int export_events(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  const std::string path = take_option(arguments, "-o");
  const std::string format = take_option(arguments, "--format");
  if (!format.empty() && format != "csv" && format != "jsonl")
    throw WrongUse{"--format is csv or jsonl, not '" + format + "'"};
  only_files(arguments);
  keep_apart(arguments, path);
  Damage damage;
  auto files = open_files(arguments, damage);
  std::FILE* out = path.empty() ? stdout : std::fopen(path.c_str(), "w");
  if (!out) throw std::runtime_error(path + ": " + std::strerror(errno));
  const bool json = format == "jsonl";
  if (!json) std::fputs(kColumns, out);
  Merge merge(files, damage);
  const auto since = [&](uint64_t time) { return Number{time - std::min(time, merge.begin())}; };
  for (Step step; merge.next(step);) {
    const bool half = step.resized && step.what == Step::What::kReleased;
    if (half && step.event->address != 0) continue;  // the line comes with the other half
    const File& file = *files[step.process];
    const Line line{since(step.time), since(file.nanoseconds(step.event->begin)), file.header().process,
                    step.event->thread, step.event};
    json ? print_json(out, line) : print_csv(out, line);
  }
  const bool good = !std::ferror(out) && std::fflush(out) == 0;
  if (out != stdout) std::fclose(out);
  if (!good) throw std::runtime_error("the output could not be written whole");
  return tell(damage);
}

}  // namespace trace
