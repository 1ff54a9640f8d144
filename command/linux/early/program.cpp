#include "program.h"

#include "kernel.h"

#include <elf.h>
#include <linux/errno.h>
#include <sys/stat.h>

namespace rh::command {
namespace {

constexpr const char* shell = "/bin/sh";
constexpr const char* default_search_path = "/bin:/usr/bin";
constexpr std::size_t script_head = 256;  // what the kernel reads of a #! line
constexpr Str blanks(" \t\0", 3);

enum class Found { yes, missing, refused };

Found can_execute(Str path) {
  kernel::Status status;
  const long result = kernel::status(path.data, status);
  if (result < 0) return result == -EACCES ? Found::refused : Found::missing;
  return S_ISREG(status.mode) && kernel::may_execute(path.data) == 0 ? Found::yes : Found::refused;
}

Refusal refused(Str path) {
  kernel::Status status;
  const bool directory = kernel::status(path.data, status) == 0 && S_ISDIR(status.mode);
  return {exit_not_executable,
          join({path, directory ? " is a directory, not a program"
                                : " may not be executed (if it is a program, chmod +x allows it)"})};
}

Refusal search(Str name, Str rest, Str& path) {
  Str unusable;
  for (bool more = true; more;) {
    const std::size_t colon = rest.find(':');
    more = colon < rest.size;
    const Str directory = rest.part(0, colon);
    rest = rest.part(colon + 1);
    path = join({directory.empty() ? "." : directory, "/", name});
    const Found found = can_execute(path);
    if (found == Found::yes) return {};
    if (found == Found::refused && unusable.empty()) unusable = path;
  }
  if (!unusable.empty()) return refused(unusable);
  return {exit_not_found, join({name, ": no such command on PATH"})};
}

Refusal locate(Str name, const char* search_path, Str& path) {
  if (name.empty()) return {exit_not_found, "the command to run is an empty word"};
  if (!name.holds('/')) return search(name, search_path ? search_path : default_search_path, path);
  path = name;
  const Found found = can_execute(name);
  if (found == Found::missing) return {exit_not_found, join({name, ": no such file"})};
  return found == Found::refused ? refused(name) : Refusal();
}

// What a file that is no ELF file says on its first line.
struct Start {
  bool text = false;  // so that a shell would run it, without #! too
  bool cut = false;   // the interpreter's name goes on beyond what the kernel reads, which then starts nothing
  Str interpreter;    // named by #!
  Str argument;       // the kernel passes all the rest as one
};

Start read_start(long file) {
  auto* head = static_cast<char*>(keep(script_head));
  if (!head) return {};
  const Str whole(head, kernel::read(file, 0, head, script_head));
  Str line = whole.part(0, whole.find('\n'));
  Start start;
  // What begins like an ELF file and is none is damaged. The first line may be empty, and so may the file.
  start.text = !line.holds('\0') && !line.starts_with(ELFMAG);
  if (!line.starts_with("#!")) return start;
  const Str after = line.part(2).trimmed(blanks);
  // Nothing stands between its end and that of all that is read.
  start.cut =
      line.size == script_head && !after.empty() && after.find_any(blanks) == after.size && !blanks.holds(line.back());
  line = after;
  const std::size_t end = line.find_any(blanks);
  start.interpreter = join({line.part(0, end)});
  start.argument = line.part(end).trimmed(blanks);
  return start;
}

// Whether starting the file changes the process's rights, upon which the loader ignores LD_PRELOAD.
Str secure_execution(Str path) {
  kernel::Status status;
  if (kernel::status(path.data, status) < 0) return {};
  const bool sets_group = (status.mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  const std::uint32_t user = (status.mode & S_ISUID) != 0 ? status.user : kernel::effective_user();
  const std::uint32_t group = sets_group ? status.group : kernel::effective_group();
  Str why;
  if (user != kernel::user())
    why = "it is setuid";
  else if (group != kernel::group())
    why = "it is setgid";
  // To the superuser capabilities give nothing new.
  else if (kernel::user() != 0 && kernel::has_attribute(path.data, "security.capability"))
    why = "it has file capabilities";
  if (why.empty() || kernel::privileges_are_fixed() || kernel::mounted_nosuid(path.data)) return {};
  return why;
}

// ld-linux-x86-64.so.2, ld-linux.so.2, ld64.so.2, and what ld.so is a link to
bool is_glibc_loader(Str path) {
  const Str name = path.base_name();
  return name.starts_with("ld-linux") || name.starts_with("ld64.so") || name.starts_with("ld.so");
}

Str loader_words(Str loader) {
  if (loader.starts_with("/system/bin/linker")) return "it is built for Android";
  return join({"its loader ", loader, " is neither glibc's nor musl's"});
}

}  // namespace

// ld-musl-x86_64.so.1; where musl is the system's, the C library itself.
bool is_musl_loader(Str path) { return path.base_name().starts_with("ld-musl-"); }

namespace {

void set_obstacle(Program& program, Obstacle obstacle, Str reason) {
  program.obstacle = obstacle;
  program.reason = reason;
}

void judge(Program& program) {
  if (const Str why = secure_execution(program.image()); !why.empty())
    return set_obstacle(program, Obstacle::secure_execution, join({why, ", and the loader then ignores LD_PRELOAD"}));
  // The other byte order is another architecture's, whatever its loader.
  if (!program.elf.valid || program.elf.architecture.little_endian != native_little_endian) return;
  const Str loader = program.elf.loader;
  if (loader.empty() && !is_glibc_loader(program.image()) && !is_musl_loader(program.image()))
    return set_obstacle(program, Obstacle::static_program, "it is statically linked");
  if (!loader.empty() && !is_glibc_loader(loader) && !is_musl_loader(loader))
    set_obstacle(program, Obstacle::foreign_loader, join({loader_words(loader), ", and libreheap needs one of these"}));
}

Refusal missing_interpreter(const Program& program) {
  Str name = program.image();
  if (name.back() != '\r') return {exit_not_found, join({program.path(), ": its interpreter ", name, " is missing"})};
  name.size -= 1;
  return {exit_not_found, join({program.path(),
                                ": its #! line ends in a carriage return, which becomes part of the "
                                "interpreter's name (",
                                name, "); save the file with Unix line ends"})};
}

// Looks at the end of the chain: an ELF file ends it, a script gives the next.
Refusal follow(Program& program, Str& next) {
  const long file = kernel::open(program.image().data);
  if (file == -ENOENT) return missing_interpreter(program);
  if (file < 0) return {};  // may be executed but not read: what it is stays unknown
  program.elf = read_elf(file);
  const Start start = program.elf.valid ? Start() : read_start(file);
  kernel::close(file);
  if (start.cut)
    return {exit_not_executable, join({program.image(), ": its interpreter's name is longer than the kernel reads of a "
                                                        "#! line (256 bytes); link it at a shorter path"})};
  if (start.interpreter.empty() && !start.text) return {};
  program.by_shell = start.interpreter.empty();
  next = program.by_shell ? Str(shell) : start.interpreter;
  program.script_argument = start.argument;
  return {};
}

}  // namespace

Refusal inspect(Str name, const char* search_path, Program& program) {
  Str next;
  if (const Refusal refusal = locate(name, search_path, next)) return refusal;
  while (!next.empty()) {
    if (program.chain_length == deepest_chain)
      return {exit_not_executable,
              join({program.path(), ": its interpreters are nested deeper than the kernel follows"})};
    program.chain[program.chain_length++] = next;
    next = {};
    if (const Refusal refusal = follow(program, next)) return refusal;
  }
  judge(program);
  return {};
}

Str started_by_env(const Program& program) {
  if (program.chain_length < 2 || !(program.image().base_name() == "env")) return {};
  for (Str rest = program.script_argument; !rest.empty();) {
    const Str word = rest.part(0, rest.find_any(blanks));
    rest = rest.part(word.size).trimmed(blanks);
    if (word == "-S" || word.holds('=')) continue;  // split the rest; NAME=VALUE
    return word.front() == '-' ? Str() : join({word});
  }
  return {};
}

bool children_reachable(const Program& program) { return program.obstacle == Obstacle::static_program; }

}  // namespace rh::command
