// What tools from outside see of a program's memory: the notes in the file that say where to look, and what is there
// when the program comes by.
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "reheap/reheap.h"
#include "support/library.h"
#include "support/pprof_file.h"
#include "support/process.h"

using namespace contract;

namespace {

struct Probe {
  std::uintptr_t at, base, counter;
  std::string arguments;
};
using Probes = std::map<std::string, Probe>;

struct Sections {
  std::string file;
  const ElfW(Ehdr) & header() const { return *reinterpret_cast<const ElfW(Ehdr)*>(file.data()); }
  const ElfW(Shdr) * find(const std::string& name) const {
    const auto* all = reinterpret_cast<const ElfW(Shdr)*>(file.data() + header().e_shoff);
    const char* names = file.data() + all[header().e_shstrndx].sh_offset;
    for (int i = 0; i != header().e_shnum; ++i)
      if (names + all[i].sh_name == name) return &all[i];
    return nullptr;
  }
};

// By provider:name.
Probes probes_in(const Sections& elf) {
  Probes found;
  const auto* notes = elf.find(".note.stapsdt");
  if (notes == nullptr) return found;
  auto aligned = [](std::size_t size) { return (size + 3) / 4 * 4; };
  for (std::size_t at = notes->sh_offset, end = at + notes->sh_size; at < end;) {
    const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(elf.file.data() + at);
    const char* words = elf.file.data() + at + sizeof(note) + aligned(note.n_namesz);
    Probe probe = {};
    std::memcpy(&probe.at, words, sizeof(probe.at));
    std::memcpy(&probe.base, words + sizeof(void*), sizeof(probe.base));
    std::memcpy(&probe.counter, words + 2 * sizeof(void*), sizeof(probe.counter));
    const std::string provider = words + 3 * sizeof(void*);
    const std::string name = words + 3 * sizeof(void*) + provider.size() + 1;
    probe.arguments = words + 3 * sizeof(void*) + provider.size() + name.size() + 2;
    EXPECT_TRUE(found.emplace(provider + ":" + name, probe).second) << name << " is in two places";
    at += sizeof(note) + aligned(note.n_namesz) + aligned(note.n_descsz);
  }
  return found;
}

Sections the_file() { return {pprof_file::read_file(expected_server())}; }

std::size_t count_of(const std::string& text, char character) {
  std::size_t count = 0;
  for (char each : text) count += each == character;
  return count;
}

TEST(Probes, AreInTheFile) {
  const Sections elf = the_file();
  const Probes probes = probes_in(elf);
  const std::map<std::string, std::size_t> arguments = {
      {"otel_memory:alloc", 3}, {"otel_memory:free", 1}, {"reheap:misuse", 2}};
  for (const auto& [name, count] : arguments) {
    ASSERT_TRUE(probes.contains(name)) << name;
    EXPECT_EQ(count_of(probes.at(name).arguments, '@'), count) << probes.at(name).arguments;
    EXPECT_EQ(probes.at(name).counter, 0u);
    ASSERT_NE(elf.find(".stapsdt.base"), nullptr);
    EXPECT_EQ(probes.at(name).base, elf.find(".stapsdt.base")->sh_addr);
  }
}

#if defined(__x86_64__)

std::uintptr_t load_bias() {
  std::uintptr_t bias = 0;
  auto visit = [](dl_phdr_info* object, std::size_t, void* to) {
    const std::string path = object->dlpi_name[0] == 0 ? "/proc/self/exe" : object->dlpi_name;
    if (real_path(path) == expected_server()) *static_cast<std::uintptr_t*>(to) = object->dlpi_addr;
    return 0;
  };
  dl_iterate_phdr(visit, &bias);
  return bias;
}

// One byte of another process's code.
long exchange_byte(pid_t process, std::uintptr_t at, long byte) {
  const long word = ptrace(PTRACE_PEEKTEXT, process, at, nullptr);
  ptrace(PTRACE_POKETEXT, process, at, (word & ~0xffL) | byte);
  return word & 0xff;
}

struct Seen {
  std::string name;
  std::uintptr_t first, second, third;
  long at_first;  // what lies there
};

constexpr long kNop = 0x90, kBreak = 0xcc;

// What passes there until the process, which has stopped itself, ends; a nop need not be made up for.
std::vector<Seen> watch(pid_t process, const Probes& probes, int* status) {
  std::vector<Seen> seen;
  const std::uintptr_t bias = load_bias();
  for (const auto& [name, probe] : probes) EXPECT_EQ(exchange_byte(process, probe.at + bias, kBreak), kNop) << name;
  for (int signal = 0;; signal = WSTOPSIG(*status) == SIGTRAP ? 0 : WSTOPSIG(*status)) {
    ptrace(PTRACE_CONT, process, nullptr, signal);
    if (waitpid(process, status, 0) != process || !WIFSTOPPED(*status)) return seen;
    user_regs_struct registers;
    ptrace(PTRACE_GETREGS, process, nullptr, &registers);
    for (const auto& [name, probe] : probes)
      if (registers.rip == probe.at + bias + 1)
        seen.push_back({name, registers.rdi, registers.rsi, registers.rdx,
                        ptrace(PTRACE_PEEKDATA, process, registers.rdi, nullptr)});
  }
}

constexpr std::size_t kShort = 1234, kLong = 3000000;

void wait_for_watcher() {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
  raise(SIGSTOP);
}

// Each byte is one of those chosen, so each block stands for itself alone.
[[noreturn]] void be_watched() {
  wait_for_watcher();
  CONTRACT_FIND(rh_profile_start)(1);
  void* block = opaque(malloc(kShort));
  void* longer = opaque(realloc(opaque(malloc(kLong / 2)), kLong));
  free(longer);
  free(block);
  CONTRACT_FIND(rh_profile_stop)();
  free(opaque(malloc(kShort)));
  _exit(0);
}

// What becomes of addresses: the bytes that are live at the end, by whoever adds up what it sees; -1 if that is not
// possible.
long live_after(const std::vector<Seen>& seen) {
  std::map<std::uintptr_t, std::uintptr_t> live;
  long bytes = 0;
  for (const Seen& each : seen) {
    const bool freed = each.name == "otel_memory:free", known = live.contains(each.first);
    if (freed != known) return -1;
    bytes += freed ? -static_cast<long>(live[each.first]) : static_cast<long>(each.third);
    if (freed)
      live.erase(each.first);
    else
      live[each.first] = each.third;
  }
  return bytes;
}

TEST(Probes, ShowSampledBlocksAndTheirFrees) {
  if (is_hardened()) GTEST_SKIP() << "the hardened build makes no profile";
  const pid_t child = fork();
  if (child == 0) be_watched();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (!WIFSTOPPED(status)) GTEST_SKIP() << "this process may not watch another";
  const std::vector<Seen> seen = watch(child, probes_in(the_file()), &status);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::size_t of_size = 0, of_longer = 0;
  for (const Seen& each : seen) {
    if (each.name != "otel_memory:alloc") continue;
    EXPECT_EQ(each.second, each.third);
    of_size += each.second == kShort;
    of_longer += each.second == kLong;
  }
  EXPECT_EQ(of_size, 1u);
  EXPECT_EQ(of_longer, 1u);
  EXPECT_EQ(live_after(seen), 0);
}

TEST(Probes, ShowMisuse) {
  const pid_t child = fork();
  if (child == 0) {
    wait_for_watcher();
    void* block = opaque(malloc(kLong));
    free(opaque(block));
    free(opaque(block));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (!WIFSTOPPED(status)) GTEST_SKIP() << "this process may not watch another";
  const std::vector<Seen> seen = watch(child, probes_in(the_file()), &status);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].name, "reheap:misuse");
  EXPECT_EQ(std::memcmp(&seen[0].at_first, "free of ", sizeof(long)), 0);
}

#endif

}  // namespace
