// What happens to a process when reheap.dll comes into it, each in a process of its own:
//
//   scenarios NAME RUNTIME     NAME from the table at the end; RUNTIME is the C runtime DLL to look at
//
// Ends with 0 when all went well, else with 1 and what did not.
#include <windows.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comparison/exported.h"
#include "redirect/crt/redirect_report.h"

namespace {

unsigned g_failures = 0;

#define CHECK(condition) check((condition), #condition, __LINE__)

bool check(bool holds, const char* what, int line) {
  if (!holds) {
    ++g_failures;
    fprintf(stderr, "scenarios.cpp:%d: not so: %s\n", line, what);
  }
  return holds;
}

// ---- the runtime ----------------------------------------------------------------------------------

struct Runtime {
  explicit Runtime(const char* name) : module(LoadLibraryA(name)) {
    find(module, "malloc", malloc);
    find(module, "calloc", calloc);
    find(module, "realloc", realloc);
    find(module, "free", free);
    find(module, "_msize", msize);
    find(module, "_strdup", strdup);
    find(module, "_expand", expand);
    find(module, "_recalloc", recalloc);
    find(module, "_aligned_malloc", aligned_malloc);
    find(module, "_aligned_realloc", aligned_realloc);
    find(module, "_aligned_msize", aligned_msize);
    find(module, "_aligned_free", aligned_free);
  }

  HMODULE module;
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  size_t (*msize)(void*);
  char* (*strdup)(const char*);
  void* (*expand)(void*, size_t);
  void* (*recalloc)(void*, size_t, size_t);
  void* (*aligned_malloc)(size_t, size_t);
  void* (*aligned_realloc)(void*, size_t, size_t);
  size_t (*aligned_msize)(void*, size_t, size_t);
  void (*aligned_free)(void*);
};

// ---- reheap.dll -----------------------------------------------------------------------------------

struct Reheap {
  Reheap() : module(LoadLibraryA("reheap.dll")) {
    if (!CHECK(module != nullptr)) ExitProcess(1);
    find(module, "rh_owns", owns);
    find(module, "rh_redirect_report", redirect_report);
    find(module, "rh_report_json", report_json);
  }

  std::string report() const { return written_by(redirect_report); }
  std::string json() const { return written_by(report_json); }

  // Its line about the DLL; empty when there is none.
  std::string report_on(HMODULE runtime) const {
    char name[MAX_PATH];
    GetModuleFileNameA(runtime, name, MAX_PATH);
    std::string wanted = std::string(strrchr(name, '\\') + 1) + " at ";
    std::string text = report();
    for (size_t begin = 0; begin < text.size();) {
      size_t end = text.find('\n', begin);
      std::string line = text.substr(begin, end - begin);
      if (_strnicmp(line.c_str(), wanted.c_str(), wanted.size()) == 0) return line;
      begin = end + 1;
    }
    return "";
  }

  HMODULE module;
  bool (*owns)(const void*);
  decltype(&rh_redirect_report) redirect_report;
  decltype(&rh_report_json) report_json;

 private:
  static std::string written_by(void (*report)(rh_write_fn write, void* to)) {
    std::string text;
    report([](const char* piece, size_t length, void* to) { static_cast<std::string*>(to)->append(piece, length); },
           &text);
    return text;
  }
};

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

bool is_loaded(const char* name) { return GetModuleHandleA(name) != nullptr; }

// ---- blocks with something in them ----------------------------------------------------------------

struct Block {
  unsigned char* bytes = nullptr;
  size_t size = 0;
  unsigned char value = 0;

  void fill(unsigned char with) {
    value = with;
    memset(bytes, value, size);
  }
  bool is_whole(size_t upto) const {
    for (size_t i = 0; i < upto; ++i)
      if (bytes[i] != value) return false;
    return true;
  }
};

class Churn {
 public:
  explicit Churn(const Runtime& runtime) : runtime_(runtime) {}

  void run() {
    while (!stop) step();
    for (Block& block : blocks_) release(block);
  }

  std::atomic<bool> stop{false};
  std::atomic<unsigned> damaged{0};
  std::atomic<unsigned> steps{0};

 private:
  void step() {
    seed_ = seed_ * 1664525 + 1013904223;
    Block& block = blocks_[(seed_ >> 8) % kBlocks];
    size_t size = 1 + (seed_ >> 16) % ((seed_ & 15) == 0 ? 100000 : 600);
    if (block.bytes == nullptr)
      allocate(block, size);
    else if ((seed_ & 64) != 0)
      resize(block, size);
    else
      release(block);
    ++steps;
  }

  void allocate(Block& block, size_t size) {
    void* bytes = (seed_ & 32) != 0 ? runtime_.malloc(size) : runtime_.calloc(1, size);
    block = {static_cast<unsigned char*>(bytes), size, 0};
    if ((seed_ & 32) == 0 && !block.is_whole(size)) ++damaged;
    block.fill(static_cast<unsigned char>(seed_));
  }

  void resize(Block& block, size_t size) {
    if (!block.is_whole(block.size)) ++damaged;
    block.bytes = static_cast<unsigned char*>(runtime_.realloc(block.bytes, size));
    if (!block.is_whole(size < block.size ? size : block.size)) ++damaged;
    block.size = size;
    block.fill(block.value);
  }

  void release(Block& block) {
    if (block.bytes != nullptr && !block.is_whole(block.size)) ++damaged;
    runtime_.free(block.bytes);
    block = {};
  }

  static constexpr size_t kBlocks = 300;
  Runtime runtime_;
  Block blocks_[kBlocks];
  uint32_t seed_ = GetCurrentThreadId();
};

// ---- blocks from before ---------------------------------------------------------------------------

// Made by the runtime itself, given to its functions once they are ours.
struct EarlyBlocks {
  explicit EarlyBlocks(const Runtime& of) : runtime(of) {
    for (void*& block : blocks) {
      block = runtime.malloc(100);
      memset(block, 0x5A, 100);
    }
    if (runtime.aligned_malloc == nullptr) return;
    for (void*& block : aligned) {
      block = runtime.aligned_malloc(100, 64);
      memset(block, 0x5A, 100);
    }
  }

  bool kept(const void* block) const {
    Block whole = {static_cast<unsigned char*>(const_cast<void*>(block)), 100, 0x5A};
    return block != nullptr && whole.is_whole(100);
  }

  void use(const Reheap& reheap) {
    for (void* block : blocks) CHECK(!reheap.owns(block) && kept(block));
    CHECK(runtime.msize(blocks[0]) == 100);
    runtime.free(blocks[0]);
    for (size_t size : {200, 100000, 100}) {
      blocks[1] = runtime.realloc(blocks[1], size);
      CHECK(kept(blocks[1]));
    }
    runtime.free(blocks[1]);
    CHECK(runtime.realloc(blocks[2], 0) == nullptr);
    if (runtime.expand != nullptr) CHECK(runtime.expand(blocks[3], 100) == blocks[3]);
    runtime.free(blocks[3]);
    if (runtime.recalloc != nullptr) {
      auto* grown = static_cast<unsigned char*>(runtime.recalloc(blocks[4], 50, 10));
      CHECK(kept(grown) && grown[100] == 0 && grown[499] == 0);
      blocks[4] = grown;
    }
    runtime.free(blocks[4]);
    use_aligned();
  }

  void use_aligned() {
    if (aligned[0] == nullptr) return;
    for (void* block : aligned) CHECK(kept(block));
    runtime.aligned_free(aligned[0]);
    for (size_t size : {200, 100000, 100}) {
      aligned[1] = runtime.aligned_realloc(aligned[1], size, 64);
      CHECK(kept(aligned[1]) && reinterpret_cast<uintptr_t>(aligned[1]) % 64 == 0);
      if (runtime.aligned_msize != nullptr) CHECK(runtime.aligned_msize(aligned[1], 64, 0) >= size);
    }
    runtime.aligned_free(aligned[1]);
  }

  Runtime runtime;
  void* blocks[5] = {};
  void* aligned[2] = {};
};

// A block of each kind comes from reheap.
void check_served(const Runtime& runtime, const Reheap& reheap) {
  void* block = runtime.malloc(100);
  CHECK(reheap.owns(block) && runtime.msize(block) == 100);
  block = runtime.realloc(block, 5000);
  CHECK(reheap.owns(block) && runtime.msize(block) == 5000);
  runtime.free(block);
  block = runtime.calloc(10, 10);
  CHECK(reheap.owns(block));
  runtime.free(block);
  block = runtime.strdup("some text");
  CHECK(reheap.owns(block));
  runtime.free(block);
  if (runtime.aligned_malloc == nullptr) return;
  block = runtime.aligned_malloc(100, 256);
  CHECK(reheap.owns(block) && reinterpret_cast<uintptr_t>(block) % 256 == 0);
  runtime.aligned_free(block);
}

// ---- the scenarios --------------------------------------------------------------------------------

// Threads that allocate, until this ends.
class Crowd {
 public:
  explicit Crowd(const Runtime& runtime) {
    for (int i = 0; i < 4; ++i) churns_.push_back(std::make_unique<Churn>(runtime));
    for (auto& churn : churns_) threads_.emplace_back([&churn] { churn->run(); });
  }
  // Until each has made so many steps more.
  void go_on(unsigned steps) {
    for (auto& churn : churns_) {
      unsigned target = churn->steps + steps;
      while (churn->steps < target) Sleep(1);
    }
  }
  void end() {
    for (auto& churn : churns_) churn->stop = true;
    for (std::thread& thread : threads_) thread.join();
    for (auto& churn : churns_) CHECK(churn->damaged == 0);
  }
  void leave_running() {
    for (std::thread& thread : threads_) thread.detach();
  }

 private:
  std::vector<std::unique_ptr<Churn>> churns_;
  std::vector<std::thread> threads_;
};

// The DLL comes while threads allocate, long after the runtime.
void late(const char* name) {
  Runtime runtime(name);
  EarlyBlocks early(runtime);
  Crowd crowd(runtime);
  crowd.go_on(2000);
  Reheap reheap;
  crowd.go_on(2000);
  check_served(runtime, reheap);
  early.use(reheap);
  crowd.end();
  CHECK(holds(reheap.report_on(runtime.module), "replaced base"));
}

// The runtime comes while threads allocate from another, goes, and comes again.
void later(const char* name) {
  Reheap reheap;
  Crowd crowd(Runtime("ucrtbase.dll"));
  CHECK(!is_loaded(name));
  void* kept[40];
  for (void*& block : kept) {
    Runtime runtime(name);
    CHECK(holds(reheap.report_on(runtime.module), "replaced base"));
    check_served(runtime, reheap);
    block = runtime.malloc(1000);
    memset(block, 0x77, 1000);
    FreeLibrary(runtime.module);
    CHECK(!is_loaded(name));
  }
  // Blocks outlive the runtime they came through.
  Runtime other("ucrtbase.dll");
  for (void* block : kept) {
    Block whole = {static_cast<unsigned char*>(block), 1000, 0x77};
    CHECK(reheap.owns(block) && whole.is_whole(1000));
    other.free(block);
  }
  crowd.end();
}

// Its account of itself has the lines of the report, in their order.
void check_json(const Reheap& reheap) {
  std::string lines = reheap.report(), expected;
  for (size_t begin = 0; begin < lines.size();) {
    size_t end = lines.find('\n', begin);
    expected += (begin == 0 ? "\"" : ",\"") + lines.substr(begin, end - begin) + "\"";
    begin = end + 1;
  }
  CHECK(holds(expected, "msvcr120.dll at "));
  CHECK(holds(reheap.json(), ("\"replaced\":[" + expected + "]}").c_str()));
}

// All at once, and blocks that are freed through another runtime than they came from.
void many(const char*) {
  constexpr const char* kNames[] = {"ucrtbase.dll", "msvcrt.dll",   "msvcr70.dll",  "msvcr71.dll", "msvcr80.dll",
                                    "msvcr90.dll",  "msvcr100.dll", "msvcr110.dll", "msvcr120.dll"};
  std::vector<Runtime> runtimes;
  for (unsigned i = 0; i < 5; ++i) runtimes.emplace_back(kNames[i]);
  Reheap reheap;
  for (unsigned i = 5; i < std::size(kNames); ++i) runtimes.emplace_back(kNames[i]);
  for (const Runtime& runtime : runtimes) {
    if (!CHECK(runtime.module != nullptr)) continue;
    check_served(runtime, reheap);
    CHECK(holds(reheap.report_on(runtime.module), "replaced base"));
    for (const Runtime& other : runtimes) other.free(other.realloc(runtime.malloc(100), 1000));
  }
  check_json(reheap);
}

void left_by_option(const char* name) {
  SetEnvironmentVariableA("REHEAP_LAYERS", "none");
  Runtime runtime(name);
  for (int i = 0; i < 3; ++i) {
    Reheap reheap;
    void* block = runtime.malloc(100);
    CHECK(!reheap.owns(block));
    runtime.free(block);
    CHECK(reheap.report().empty());
    // Having replaced nothing it can go again.
    FreeLibrary(reheap.module);
    CHECK(!is_loaded("reheap.dll"));
  }
}

// What a process has few of: the next slot of thread-local storage, and the highest of a few new handles (places are
// used again, so that it tells how many are in use).
struct Scarce {
  DWORD slot = TlsAlloc();
  uintptr_t handle = 0;

  Scarce() {
    TlsFree(slot);
    HANDLE events[16];
    for (HANDLE& event : events) {
      event = CreateEventW(nullptr, FALSE, FALSE, nullptr);
      handle = std::max(handle, reinterpret_cast<uintptr_t>(event));
    }
    for (HANDLE event : events) CloseHandle(event);
  }
};

// It may be loaded and unloaded for ever: used, and its helper thread started, it leaves nothing behind.
void leaves_nothing(const char*) {
  SetEnvironmentVariableA("REHEAP_LAYERS", "none");
  std::unique_ptr<Scarce> first;
  for (int i = 0; i < 20; ++i) {
    Reheap reheap;
    void* (*allocate)(size_t) = nullptr;
    void (*release)(void*) = nullptr;
    find(reheap.module, "rh_malloc", allocate);
    find(reheap.module, "rh_free", release);
    release(allocate(100));
    release(allocate(16 << 20));
    Sleep(10);  // the helper has begun
    FreeLibrary(reheap.module);
    CHECK(!is_loaded("reheap.dll"));
    if (first == nullptr) first = std::make_unique<Scarce>();
  }
  Scarce last;
  CHECK(last.slot == first->slot);
  CHECK(last.handle == first->handle);
}

void stays(const char* name) {
  Runtime runtime(name);
  Reheap reheap;
  void* block = runtime.malloc(100);
  for (int i = 0; i < 5; ++i) FreeLibrary(reheap.module);
  CHECK(is_loaded("reheap.dll"));
  CHECK(reheap.owns(block));
  check_served(runtime, reheap);
  runtime.free(block);
}

// main returns while threads allocate; blocks are freed by what runs after it.
void ends(const char* name) {
  static Runtime runtime(name);
  static void* block = runtime.malloc(100);
  Reheap reheap;
  static void* ours = runtime.malloc(100);
  atexit([] {
    runtime.free(block);
    runtime.free(ours);
    runtime.free(runtime.malloc(200));
  });
  Crowd* crowd = new Crowd(runtime);
  crowd->go_on(1000);
  crowd->leave_running();
}

// ---- runtimes made for the test -------------------------------------------------------------------

// So that a runtime's own blocks are not ours after all.
void leave_system_heap() { SetEnvironmentVariableA("REHEAP_LAYERS", "crt"); }

std::vector<unsigned char> head(const void* code) {
  const auto* bytes = static_cast<const unsigned char*>(code);
  return std::vector<unsigned char>(bytes, bytes + 16);
}

// A function of it is too short to be replaced.
void whole_or_none(const char* name) {
  Runtime runtime(name);
  if (!CHECK(runtime.module != nullptr)) return;
  auto before = head(reinterpret_cast<const void*>(runtime.malloc));
  leave_system_heap();
  Reheap reheap;
  void* block = runtime.malloc(100);
  CHECK(!reheap.owns(block));
  runtime.free(block);
  CHECK(head(reinterpret_cast<const void*>(runtime.malloc)) == before);
  std::string line = reheap.report_on(runtime.module);
  CHECK(holds(line, "left, it must be replaced whole: left base because _expand is too short for a jump"));
  CHECK(!holds(line, "replaced base"));
}

struct DebugRuntime : Runtime {
  explicit DebugRuntime(const char* name) : Runtime(name) {
    find(module, "_malloc_dbg", malloc_dbg);
    find(module, "_realloc_dbg", realloc_dbg);
    find(module, "_free_dbg", free_dbg);
    find(module, "_msize_dbg", msize_dbg);
    find(module, "_malloc_base", malloc_base);
    find(module, "_free_base", free_base);
    find(module, "_CrtIsValidHeapPointer", is_valid);
    find(module, "fake_errors", errors);
    find(module, "fake_live", live);
  }

  void* (*malloc_dbg)(size_t, int, const char*, int);
  void* (*realloc_dbg)(void*, size_t, int, const char*, int);
  void (*free_dbg)(void*, int);
  size_t (*msize_dbg)(void*, int);
  void* (*malloc_base)(size_t);
  void (*free_base)(void*);
  int (*is_valid)(const void*);
  int (*errors)();
  int (*live)();
};

// One that has headers before its blocks. Type 1 is malloc's, 4 a client's.
void debug_heap(const char* name) {
  DebugRuntime runtime(name);
  if (!CHECK(runtime.module != nullptr)) return;
  void* early[6];
  for (void*& block : early) block = runtime.malloc(100);
  void* client = runtime.malloc_dbg(100, 4, "here", 1);
  void* aligned = runtime.aligned_malloc(100, 64);
  leave_system_heap();
  Reheap reheap;
  CHECK(holds(reheap.report_on(runtime.module), "a debug heap"));
  check_served(runtime, reheap);
  // Its own blocks, through either kind of function.
  runtime.free(early[0]);
  runtime.free_dbg(early[1], 1);
  runtime.free(runtime.realloc(early[2], 500));
  runtime.free_dbg(runtime.realloc_dbg(early[3], 500, 1, "here", 1), 1);
  CHECK(runtime.msize(early[4]) == 100 && runtime.msize_dbg(early[4], 1) == 100);
  CHECK(runtime.is_valid(early[4]) == 1);
  runtime.free(early[4]);
  runtime.free(early[5]);
  runtime.free_dbg(client, 4);
  runtime.aligned_free(aligned);
  // Ours, through either.
  void* block = runtime.malloc_dbg(100, 4, "here", 1);
  CHECK(reheap.owns(block) && runtime.msize(block) == 100 && runtime.is_valid(block) == 1);
  runtime.free(block);
  block = runtime.malloc(100);
  CHECK(reheap.owns(block) && runtime.msize_dbg(block, 1) == 100);
  block = runtime.realloc_dbg(block, 300, 1, "here", 1);
  CHECK(reheap.owns(block) && runtime.msize_dbg(block, 1) == 300);
  runtime.free_dbg(block, 1);
  // The heap below is not ours to replace.
  block = runtime.malloc_base(100);
  CHECK(!reheap.owns(block));
  runtime.free_base(block);
  CHECK(runtime.errors() == 0);
  CHECK(runtime.live() == 0);
}

// ---- the DLL itself -------------------------------------------------------------------------------

void stands_alone(const char*) {
  Reheap reheap;
  CHECK(GetProcAddress(reheap.module, reinterpret_cast<const char*>(1)) != nullptr);
  const auto* base = reinterpret_cast<const unsigned char*>(reheap.module);
  const auto* dos = reinterpret_cast<const IMAGE_DOS_HEADER*>(base);
  const auto* headers = reinterpret_cast<const IMAGE_NT_HEADERS*>(base + dos->e_lfanew);
  WORD flags = headers->OptionalHeader.DllCharacteristics;
  CHECK((flags & IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE) != 0);
  CHECK((flags & IMAGE_DLLCHARACTERISTICS_NX_COMPAT) != 0);
  CHECK(headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_BASERELOC].Size != 0);
  const auto* import = reinterpret_cast<const IMAGE_IMPORT_DESCRIPTOR*>(
      base + headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress);
  unsigned imports = 0;
  for (; import->Name != 0; ++import, ++imports) {
    const char* name = reinterpret_cast<const char*>(base + import->Name);
    CHECK(_stricmp(name, "kernel32.dll") == 0 || _stricmp(name, "ntdll.dll") == 0);
  }
  CHECK(imports >= 2);
}

struct Scenario {
  const char* name;
  void (*run)(const char* runtime);
};

constexpr Scenario kScenarios[] = {
    {"late", late},
    {"later", later},
    {"many", many},
    {"left_by_option", left_by_option},
    {"leaves_nothing", leaves_nothing},
    {"stays", stays},
    {"ends", ends},
    {"debug_heap", debug_heap},
    {"whole_or_none", whole_or_none},
    {"stands_alone", stands_alone},
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  for (const Scenario& scenario : kScenarios) {
    if (strcmp(arguments[1], scenario.name) != 0) continue;
    scenario.run(arguments[2]);
    fprintf(stderr, "%s: %u failed\n", scenario.name, g_failures);
    return g_failures == 0 ? 0 : 1;
  }
  return 2;
}
