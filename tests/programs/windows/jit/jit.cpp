// jit MODE DLL [THREADS MODULES]: compiles functions on several threads with LLVM, from llvmlite's DLL, and runs them;
// they allocate too. Modes:
//
//   unload   then unloads the DLL, and goes on allocating
//   exit     ends the process in the middle of it
//   low      every block, of compiled code and of ours, must lie below 4 GiB
//   image    the same within 2 GiB of the program
#include <windows.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Ref = void*;

// What is used of the DLL's C interface.
struct Llvm {
  HMODULE dll;
  void (*initialize_target)();
  void (*initialize_printer)();
  Ref (*context_create)();
  void (*context_dispose)(Ref context);
  Ref (*parse)(Ref context, const char* text, const char** error);
  Ref (*target)(const char* triple, const char** error);
  Ref (*machine)(Ref target, const char* triple, const char* cpu, const char* features, int level,
                 const char* relocation, const char* model, int print, int jit, const char* abi);
  Ref (*compiler)(Ref module, Ref machine, bool own_memory, const char** error);
  void (*finalize)(Ref engine);
  uint64_t (*address)(Ref engine, const char* name);
  void (*dispose)(Ref engine);
};
Llvm llvm;

constexpr int kFunctions = 100;  // of a module
constexpr char kTriple[] = "x86_64-pc-windows-msvc-elf";

enum class Range { any, low, image };
Range range = Range::any;
std::atomic<long> outside, blocks, compiled;
std::atomic<uint64_t> sum;

[[noreturn]] void fail(const char* what) {
  printf("FAILED: %s\n", what);
  fflush(stdout);
  ExitProcess(1);
}

template <typename F> void find(F& function, const char* name) {
  function = reinterpret_cast<F>(reinterpret_cast<void*>(GetProcAddress(llvm.dll, name)));
  if (function == nullptr) fail(name);
}

void load(const char* path) {
  llvm.dll = LoadLibraryExA(path, nullptr, LOAD_WITH_ALTERED_SEARCH_PATH);
  if (llvm.dll == nullptr) fail("LLVM cannot be loaded");
  find(llvm.initialize_target, "LLVMPY_InitializeNativeTarget");
  find(llvm.initialize_printer, "LLVMPY_InitializeNativeAsmPrinter");
  find(llvm.context_create, "LLVMPY_ContextCreate");
  find(llvm.context_dispose, "LLVMPY_ContextDispose");
  find(llvm.parse, "LLVMPY_ParseAssembly");
  find(llvm.target, "LLVMPY_GetTargetFromTriple");
  find(llvm.machine, "LLVMPY_CreateTargetMachine");
  find(llvm.compiler, "LLVMPY_CreateMCJITCompiler");
  find(llvm.finalize, "LLVMPY_FinalizeObject");
  find(llvm.address, "LLVMPY_GetFunctionAddress");
  find(llvm.dispose, "LLVMPY_DisposeExecutionEngine");
  llvm.initialize_target();
  llvm.initialize_printer();
}

bool in_range(const void* block) {
  uintptr_t at = reinterpret_cast<uintptr_t>(block);
  uintptr_t image = reinterpret_cast<uintptr_t>(GetModuleHandleA(nullptr));
  switch (range) {
  case Range::low: return at < (uintptr_t{1} << 32);
  case Range::image: return (at > image ? at - image : image - at) < (uintptr_t{1} << 31);
  default: return true;
  }
}

void see(const void* block) {
  blocks++;
  if (!in_range(block)) outside++;
}

std::string number(uint64_t value) { return std::to_string(value); }

// Functions that take a block, write their answer to it, and give it back to be read and freed.
std::string source(int module) {
  std::string text = "target triple = \"" + std::string(kTriple) + "\"\n";
  std::string allocate = number(reinterpret_cast<uintptr_t>(&malloc));
  for (int i = 0; i < kFunctions; i++) {
    std::string factor = number(static_cast<unsigned>(module * 1000 + i));
    text += "define ptr @f" + number(static_cast<unsigned>(i)) +
            "(i64 %x) {\n"
            "  %allocate = inttoptr i64 " +
            allocate +
            " to ptr\n"
            "  %block = call ptr %allocate(i64 64)\n"
            "  br label %loop\n"
            "loop:\n"
            "  %i = phi i64 [0, %0], [%next, %loop]\n"
            "  %s = phi i64 [%x, %0], [%more, %loop]\n"
            "  %term = mul i64 %i, " +
            factor +
            "\n"
            "  %more = add i64 %s, %term\n"
            "  %next = add i64 %i, 1\n"
            "  %done = icmp eq i64 %next, 10\n"
            "  br i1 %done, label %end, label %loop\n"
            "end:\n"
            "  store i64 %more, ptr %block\n"
            "  ret ptr %block\n"
            "}\n";
  }
  return text;
}

void run(Ref engine, int module) {
  for (int i = 0; i < kFunctions; i++) {
    uint64_t address = llvm.address(engine, ("f" + number(static_cast<unsigned>(i))).c_str());
    auto* function = reinterpret_cast<uint64_t* (*)(uint64_t)>(address);
    uint64_t* block = function(7);
    see(block);
    if (*block != 7 + 45u * static_cast<unsigned>(module * 1000 + i)) fail("a wrong answer");
    sum += *block;
    free(block);
    compiled++;
  }
}

void compile(int module) {
  const char* error = nullptr;
  Ref context = llvm.context_create();
  Ref parsed = llvm.parse(context, source(module).c_str(), &error);
  if (parsed == nullptr) fail(error);
  Ref target = llvm.target(kTriple, &error);
  Ref machine = llvm.machine(target, kTriple, "", "", 2, "default", "jitdefault", 0, 1, "");
  Ref engine = llvm.compiler(parsed, machine, false, &error);
  if (engine == nullptr) fail(error);
  llvm.finalize(engine);
  run(engine, module);
  llvm.dispose(engine);
  llvm.context_dispose(context);
}

void allocate_some(unsigned seed) {
  std::vector<void*> held;
  for (unsigned i = 0; i < 5000; i++) {
    void* block = malloc(1 + (seed = seed * 1103515245 + 12345) % (i % 100 == 0 ? 300000 : 700));
    if (block == nullptr) fail("no memory");
    see(block);
    held.push_back(block);
  }
  for (void* block : held) free(block);
}

struct Work {
  int thread;
  int modules;
  bool for_ever;
};

DWORD WINAPI work(void* argument) {
  const Work& mine = *static_cast<const Work*>(argument);
  do {
    for (int i = 0; i < mine.modules; i++) {
      compile(mine.thread * 100 + i);
      allocate_some(static_cast<unsigned>(mine.thread * mine.modules + i));
    }
  } while (mine.for_ever);
  return 0;
}

// The threads' work has to stay where it is until they end.
std::vector<HANDLE> start(std::vector<Work>& all, int modules, bool for_ever) {
  std::vector<HANDLE> threads;
  int number_of_thread = 0;
  for (Work& each : all) {
    each = {number_of_thread++, modules, for_ever};
    threads.push_back(CreateThread(nullptr, 0, work, &each, 0, nullptr));
  }
  return threads;
}

void work_on_threads(int threads, int modules) {
  std::vector<Work> all(static_cast<size_t>(threads));
  for (HANDLE thread : start(all, modules, false)) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
  }
  printf("%ld functions compiled and run, their sum is %llu\n", compiled.load(),
         static_cast<unsigned long long>(sum.load()));
}

void unload(const char* path) {
  if (!FreeLibrary(llvm.dll) || GetModuleHandleA(path) != nullptr) fail("the DLL is still there");
  printf("unloaded\n");
  for (unsigned i = 0; i < 20; i++) allocate_some(i);
  printf("%ld blocks\n", blocks.load());
}

// The process ends while every thread allocates or compiles.
[[noreturn]] void end_in_the_middle(int threads) {
  static std::vector<Work> all(static_cast<size_t>(threads));
  start(all, 2, true);
  while (compiled < 2 * kFunctions) Sleep(1);
  printf("ending\n");
  exit(3);
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) fail("jit MODE DLL THREADS MODULES");
  const char* mode = words[1];
  load(words[2]);
  int threads = atoi(words[3]), modules = atoi(words[4]);
  if (strcmp(mode, "exit") == 0) end_in_the_middle(threads);
  if (strcmp(mode, "low") == 0) range = Range::low;
  if (strcmp(mode, "image") == 0) range = Range::image;
  work_on_threads(threads, modules);
  if (range != Range::any) {
    printf("%ld of %ld blocks outside\n", outside.load(), blocks.load());
    return outside == 0 ? 0 : 1;
  }
  unload(words[2]);
  return 0;
}
