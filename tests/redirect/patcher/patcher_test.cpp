// The patcher on functions written by hand: what it replaces still works as its original, what it refuses is not
// touched.
#include "redirect/patcher/patch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "code.h"

using namespace rh::redirect;

namespace {

int two(int) { return 2; }

constexpr const char* kTooShort = "is too short for a jump";
constexpr const char* kUnmovable = "begins with an instruction that cannot be moved";
constexpr const char* kUnknown = "begins with an unknown instruction";
constexpr const char* kGoesBack = "branches back to its first bytes";

// Prepares the replacement of a function by `two`, and commits it when there is no problem.
struct Replaced {
  explicit Replaced(const Code& code) {
    EXPECT_TRUE(memory.open_near(code.range()));
    problem = prepare(code.range(), reinterpret_cast<const void*>(two), memory, &patch);
    EXPECT_TRUE(memory.seal());
    if (problem == nullptr) problem = commit(&patch, 1);
  }
  ~Replaced() { memory.release(); }

  int original(int argument = 0) const { return Code::call(patch.original, argument); }

  CodeMemory memory;
  Patch patch;
  const char* problem = nullptr;
};

void expect_replaced(const Code& code, std::initializer_list<int> arguments) {
  std::vector<int> before;
  for (int argument : arguments) before.push_back(code.call(argument));
  Replaced replaced(code);
  ASSERT_STREQ(replaced.problem, nullptr);
  EXPECT_EQ(code.call(), 2);
  size_t index = 0;
  for (int argument : arguments) EXPECT_EQ(replaced.original(argument), before[index++]) << argument;
}

void expect_refused(const Bytes& bytes, const char* reason) {
  Code code(bytes);
  Bytes before = code.head(32);
  Replaced replaced(code);
  EXPECT_STREQ(replaced.problem, reason);
  EXPECT_EQ(code.head(32), before);
}

// The first argument into eax.
Bytes take_argument() { return k64 ? Bytes{0x89, 0xC8} : Bytes{0x8B, 0x44, 0x24, 0x04}; }

Bytes little_endian(int32_t value) {
  Bytes bytes(sizeof(value));
  memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// ---- what can be replaced -------------------------------------------------------------------------

TEST(patcher, replaces_a_function_and_keeps_the_original) {
  Code code(returning(1));
  Replaced replaced(code);
  ASSERT_STREQ(replaced.problem, nullptr);
  EXPECT_EQ(code.call(), 2);
  EXPECT_EQ(replaced.original(), 1);
}

TEST(patcher, changes_only_the_bytes_of_the_jump) {
  Code code(no_operations(16) + returning(1));
  Bytes before = code.head(64);
  Replaced replaced(code);
  ASSERT_STREQ(replaced.problem, nullptr);
  Bytes after = code.head(64);
  EXPECT_NE(Bytes(before.begin(), before.begin() + kJumpSize), Bytes(after.begin(), after.begin() + kJumpSize));
  EXPECT_EQ(Bytes(before.begin() + kJumpSize, before.end()), Bytes(after.begin() + kJumpSize, after.end()));
}

TEST(patcher, leaves_nothing_that_can_be_written_and_run) {
  Code code(returning(1));
  Replaced replaced(code);
  ASSERT_STREQ(replaced.problem, nullptr);
  EXPECT_EQ(protection_of(code.begin()), DWORD{PAGE_EXECUTE_READ});
  EXPECT_EQ(protection_of(replaced.patch.original), DWORD{PAGE_EXECUTE_READ});
}

TEST(patcher, takes_padding_behind_a_short_function) {
  // xor eax, eax; ret: three bytes, then int3 up to the next function.
  expect_replaced(Code({0x31, 0xC0, 0xC3}), {0});
}

TEST(patcher, takes_long_no_operations_for_padding) {
  expect_replaced(Code({0x31, 0xC0, 0xC3, 0x0F, 0x1F, 0x40, 0x00}), {0});
}

TEST(patcher, moves_a_short_branch) {
  // eax = argument; test eax, eax; jne +6; return 7; or return 9
  Bytes body = take_argument() + Bytes{0x85, 0xC0, 0x75, 0x06} + returning(7) + returning(9);
  // On 32-bit the branch lies behind the jump; bring it into the first five bytes there too.
  if (!k64) body = Bytes{0x39, 0x64, 0x24, 0x04, 0x77, 0x06} + returning(7) + returning(9);
  expect_replaced(Code(body), {0, 1, 0x7FFFFFFF});
}

TEST(patcher, moves_a_branch_that_is_first) {
  // The carry flag is clear after xor; the branch that asks for it lies within the first bytes.
  expect_replaced(Code(Bytes{0x31, 0xC0, 0x72, 0x06} + returning(7) + returning(9)), {0});
  expect_replaced(Code(Bytes{0x31, 0xC0, 0x73, 0x06} + returning(7) + returning(9)), {0});
}

TEST(patcher, moves_a_long_branch) {
  expect_replaced(Code(Bytes{0x31, 0xC0, 0x0F, 0x83, 6, 0, 0, 0} + returning(7) + returning(9)), {0});
}

TEST(patcher, moves_a_jump) {
  expect_replaced(Code(Bytes{0xEB, 0x0E} + Bytes(14, 0xCC) + returning(5)), {0});
  expect_replaced(Code(Bytes{0xE9, 0x0B, 0, 0, 0} + Bytes(11, 0xCC) + returning(5)), {0});
}

TEST(patcher, moves_data_relative_to_the_instruction) {
  if (!k64) GTEST_SKIP() << "32-bit code has no such data";
  // mov eax, [rip + 0x3A] reads at 0x40; then the same with an immediate behind the displacement.
  Bytes data = little_endian(1234);
  Bytes read = Bytes{0x8B, 0x05, 0x3A, 0, 0, 0, 0xC3};
  expect_replaced(Code(read + Bytes(0x40 - read.size(), 0xCC) + data), {0});
  // cmp dword [rip + 0x36], 1234 ; sete al ; movzx eax, al ; ret
  Bytes compare =
      Bytes{0x81, 0x3D, 0x36, 0, 0, 0} + little_endian(1234) + Bytes{0x0F, 0x94, 0xC0, 0x0F, 0xB6, 0xC0, 0xC3};
  Code code(compare + Bytes(0x40 - compare.size(), 0xCC) + data);
  ASSERT_EQ(code.call(), 1);
  expect_replaced(code, {0});
}

TEST(patcher, goes_over_the_jump_of_another_patcher) {
  Code elsewhere(returning(5));
  Code code(Bytes{0xE9} + little_endian(0), elsewhere.range().end + 0x10000);
  int32_t distance = static_cast<int32_t>(elsewhere.begin() - (code.begin() + 5));
  code.rewrite(Bytes{0xE9} + little_endian(distance));
  expect_replaced(code, {0});
}

TEST(patcher, replaces_again_what_it_replaced) {
  Code code(returning(1));
  Replaced first(code);
  Replaced second(code);
  ASSERT_STREQ(second.problem, nullptr);
  EXPECT_EQ(code.call(), 2);
  EXPECT_EQ(second.original(), 2);
  EXPECT_EQ(first.original(), 1);
}

// ---- what is refused ------------------------------------------------------------------------------

TEST(patcher, refuses_a_function_with_another_right_behind) {
  expect_refused(Bytes{0x31, 0xC0, 0xC3} + returning(7), kTooShort);
}

TEST(patcher, refuses_a_call) {
  expect_refused(Bytes{0xE8, 0, 0, 0, 0} + returning(7), kUnmovable);
  expect_refused(Bytes{0x51, 0xFF, 0xD0, 0x59} + returning(7), kUnmovable);
}

TEST(patcher, refuses_branches_that_have_no_long_form) {
  expect_refused(Bytes{0x31, 0xC9, 0xE3, 0x06} + returning(7) + returning(9), kUnmovable);  // jecxz
  expect_refused(Bytes{0x90, 0xE2, 0x08} + returning(7) + returning(9), kUnmovable);        // loop
}

TEST(patcher, refuses_unknown_instructions) {
  expect_refused({0x0F, 0x04, 0xC3}, kUnknown);
  expect_refused(no_operations(3) + Bytes{0x0F, 0x04, 0xC3}, kUnknown);
}

TEST(patcher, refuses_what_it_cannot_follow_to_the_end) {
  expect_refused(no_operations(8) + Bytes{0x0F, 0x04, 0xC3}, "has an unknown instruction");
}

TEST(patcher, refuses_a_function_cut_off_by_the_end_of_its_section) {
  Code code(returning(1));
  CodeMemory memory;
  ASSERT_TRUE(memory.open_near(code.range()));
  Patch patch;
  Range cut = {code.range().begin, code.range().begin + 4};
  EXPECT_STREQ(prepare(cut, reinterpret_cast<const void*>(two), memory, &patch), kUnknown);
  memory.release();
}

TEST(patcher, refuses_a_branch_back_into_the_jump) {
  for (uint8_t target : {1, 2, 3, 4}) {
    // Eight bytes of nothing, then dec eax; jne target; ret
    uint8_t back = static_cast<uint8_t>(target - 12);
    expect_refused(no_operations(8) + Bytes{0xFF, 0xC8, 0x75, back, 0xC3}, kGoesBack);
  }
}

TEST(patcher, refuses_a_loop_over_the_whole_function) {
  expect_refused(no_operations(8) + Bytes{0xFF, 0xC8, 0x75, 0xF4, 0xC3}, kGoesBack);
}

TEST(patcher, takes_a_loop_that_ends_behind_the_jump) {
  // The loop's target is the first byte that stays.
  Bytes body = no_operations(5) + Bytes{0x31, 0xC0, 0x40, 0x83, 0xF8, 0x05, 0x75, 0xFA, 0xC3};
  if (k64) body = no_operations(5) + Bytes{0x31, 0xC0, 0xFF, 0xC0, 0x83, 0xF8, 0x05, 0x75, 0xF9, 0xC3};
  expect_replaced(Code(body), {0});
  Bytes to_fifth = Bytes{0x31, 0xC0, 0x90, 0x90, 0x90} + Bytes{0x83, 0xC0, 0x01, 0x83, 0xF8, 0x05, 0x75, 0xF8, 0xC3};
  expect_replaced(Code(to_fifth), {0});
}

TEST(patcher, sees_a_branch_behind_an_early_return) {
  // test; je over the return; ret; over it a branch back.
  Bytes body = no_operations(8) + Bytes{0x85, 0xC0, 0x74, 0x01, 0xC3} + Bytes{0x75, 0xF2, 0xC3};
  expect_refused(body, kGoesBack);
}

TEST(patcher, takes_a_function_with_a_part_among_others) {
  // Five bytes of nothing; xor eax, eax; je to 64; ret   and at 32 another function, which jumps into this one's first
  // bytes
  Bytes body = no_operations(5) + Bytes{0x31, 0xC0, 0x0F, 0x84, 0x33, 0, 0, 0, 0xC3};
  body = body + Bytes(32 - body.size(), 0xCC) + Bytes{0xE9, 0xDE, 0xFF, 0xFF, 0xFF};
  expect_replaced(Code(body + Bytes(64 - body.size(), 0xCC) + returning(8)), {0});
}

TEST(patcher, needs_room_for_the_trampoline) {
  Code code(returning(1));
  CodeMemory memory;
  ASSERT_TRUE(memory.open_near(code.range()));
  while (memory.take(64) != nullptr) {}
  Patch patch;
  EXPECT_STREQ(prepare(code.range(), reinterpret_cast<const void*>(two), memory, &patch),
               "leaves no room for its patch");
  memory.release();
}

// ---- what is asked of the system -------------------------------------------------------------------

#if defined(__x86_64__)
extern "C" decltype(&VirtualProtect) import_of_virtual_protect asm("__imp_VirtualProtect");
#else
extern "C" decltype(&VirtualProtect) import_of_virtual_protect asm("__imp__VirtualProtect@16");
#endif
decltype(&VirtualProtect) g_protect = nullptr;  // the system's, while another is in its place

// Sees every call of VirtualProtect by this program, which the patcher is linked into, while it lives.
class Protections {
 public:
  explicit Protections(decltype(&VirtualProtect) seen) {
    g_protect = import_of_virtual_protect;
    replace(seen);
  }
  ~Protections() { replace(g_protect); }
  Protections(const Protections&) = delete;
  Protections& operator=(const Protections&) = delete;

 private:
  static void replace(decltype(&VirtualProtect) function) {
    DWORD before;
    g_protect(&import_of_virtual_protect, sizeof(function), PAGE_READWRITE, &before);
    import_of_virtual_protect = function;
  }
};

std::vector<DWORD> g_asked;

BOOL WINAPI note_protection(void* address, SIZE_T size, DWORD protection, DWORD* before) {
  g_asked.push_back(protection);
  return g_protect(address, size, protection, before);
}

constexpr DWORD kNoNewTargets = 0x40000000;  // PAGE_TARGETS_NO_UPDATE

TEST(patcher, keeps_pages_executable_while_it_writes) {
  Code code(returning(1));
  CodeMemory memory;
  ASSERT_TRUE(memory.open_near(code.range()));
  Patch patch;
  ASSERT_STREQ(prepare(code.range(), reinterpret_cast<const void*>(two), memory, &patch), nullptr);
  ASSERT_TRUE(memory.seal());
  g_asked.clear();
  {
    Protections seen(note_protection);
    ASSERT_STREQ(commit(&patch, 1), nullptr);
  }
  EXPECT_EQ(g_asked, (std::vector<DWORD>{PAGE_EXECUTE_READWRITE, PAGE_EXECUTE_READ}));
  memory.release();
}

// Only the jumps lead into its memory, and our own calls.
TEST(patcher, makes_no_targets_for_guarded_calls) {
  Code code(returning(1));
  CodeMemory memory;
  ASSERT_TRUE(memory.open_near(code.range()));
  g_asked.clear();
  {
    Protections seen(note_protection);
    ASSERT_TRUE(memory.seal());
  }
  EXPECT_EQ(g_asked, (std::vector<DWORD>{PAGE_EXECUTE_READ | kNoNewTargets}));
  memory.release();
}

BOOL WINAPI know_no_targets(void* address, SIZE_T size, DWORD protection, DWORD* before) {
  return (protection & kNoNewTargets) == 0 && g_protect(address, size, protection, before);
}

TEST(patcher, seals_where_the_system_knows_no_guarded_calls) {
  Code code(returning(1));
  Protections seen(know_no_targets);
  Replaced replaced(code);
  ASSERT_STREQ(replaced.problem, nullptr);
  EXPECT_EQ(code.call(), 2);
}

// ---- what unwinders find ---------------------------------------------------------------------------

#if defined(__x86_64__)

// push rbx; push rsi; sub rsp, 0x28; mov eax, 7; add rsp, 0x28; pop rsi; pop rbx; ret; and what unwinders know of it.
class Unwound {
 public:
  Unwound()
      : code_(Bytes{0x53, 0x56, 0x48, 0x83, 0xEC, 0x28, 0xB8, 7, 0, 0, 0, 0x48, 0x83, 0xC4, 0x28} +
              Bytes{0x5E, 0x5B, 0xC3} + Bytes(kInfo - 18, 0xCC) +
              // version 1, 6 bytes of prolog, 3 codes: reserve 0x28, push rsi, push rbx
              Bytes{0x01, 6, 3, 0, 6, 0x42, 2, 0x60, 1, 0x30, 0, 0}) {
    EXPECT_TRUE(RtlAddFunctionTable(&function_, 1, code_.range().begin));
  }
  ~Unwound() { RtlDeleteFunctionTable(&function_); }
  const Code& code() const { return code_; }

 private:
  static constexpr size_t kInfo = 32;
  Code code_;
  RUNTIME_FUNCTION function_ = {0, 18, {kInfo}};
};

// Whether a walk from there, with `pushed` of the function's eight-byte words on the stack, finds its caller.
bool finds_caller(const uint8_t* at, size_t pushed) {
  constexpr size_t kReturn = 30;
  constexpr DWORD64 kCaller = 0x1234, kRbx = 0x77, kRsi = 0x99;
  DWORD64 stack[kReturn + 10] = {};
  stack[kReturn] = kCaller;
  stack[kReturn - 1] = kRbx;
  stack[kReturn - 2] = kRsi;
  CONTEXT context = {};
  context.Rip = reinterpret_cast<uintptr_t>(at);
  context.Rsp = reinterpret_cast<uintptr_t>(&stack[kReturn - pushed]);
  context.Rbx = kRbx;
  context.Rsi = kRsi;
  DWORD64 base = 0, frame = 0;
  void* data = nullptr;
  RUNTIME_FUNCTION* function = RtlLookupFunctionEntry(context.Rip, &base, nullptr);
  if (function == nullptr) return false;
  if (pushed > 0) context.Rbx = 0;
  if (pushed > 1) context.Rsi = 0;
  RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, function, &context, &data, &frame, nullptr);
  return context.Rip == kCaller && context.Rsp == reinterpret_cast<uintptr_t>(&stack[kReturn + 1]) &&
         context.Rbx == kRbx && context.Rsi == kRsi;
}

TEST(patcher, lets_stacks_be_walked_from_the_moved_instructions) {
  Unwound function;
  EXPECT_TRUE(finds_caller(function.code().begin() + 2, 2));  // the control
  Replaced replaced(function.code());
  ASSERT_STREQ(replaced.problem, nullptr);
  EXPECT_EQ(replaced.original(), 7);
  const uint8_t* original = replaced.patch.original;
  EXPECT_TRUE(finds_caller(original, 0));
  EXPECT_TRUE(finds_caller(original + 1, 1));
  EXPECT_TRUE(finds_caller(original + 2, 2));
  EXPECT_TRUE(finds_caller(original + 6, 7));  // at the jump back
  EXPECT_TRUE(finds_caller(function.code().begin() + 6, 7));
  replaced.memory.release();
  DWORD64 base = 0;
  EXPECT_EQ(RtlLookupFunctionEntry(reinterpret_cast<uintptr_t>(original), &base, nullptr), nullptr);
}

#endif

// ---- many at once ---------------------------------------------------------------------------------

TEST(patcher, writes_all_or_none) {
  Code first(returning(1)), last(returning(3));
  CodeMemory memory;
  ASSERT_TRUE(memory.open_near(first.range()));
  Patch patches[3];
  ASSERT_STREQ(prepare(first.range(), reinterpret_cast<const void*>(two), memory, &patches[0]), nullptr);
  ASSERT_STREQ(prepare(last.range(), reinterpret_cast<const void*>(two), memory, &patches[2]), nullptr);
  ASSERT_TRUE(memory.seal());
  patches[1] = patches[0];
  patches[1].entry = reinterpret_cast<uint8_t*>(uintptr_t{4096});  // nothing lies there
  Bytes before = first.head(16);
  EXPECT_STREQ(commit(patches, 3), "lies in a process that does not let code be changed");
  EXPECT_EQ(first.head(16), before);
  EXPECT_EQ(protection_of(first.begin()), DWORD{PAGE_EXECUTE_READ});
  EXPECT_EQ(last.call(), 3);
  patches[1] = patches[2];
  EXPECT_STREQ(commit(patches, 2), nullptr);
  EXPECT_EQ(first.call(), 2);
  EXPECT_EQ(last.call(), 2);
  memory.release();
}

TEST(patcher, takes_patches_that_share_a_page) {
  Bytes body = returning(1);
  body.resize(16, 0xCC);
  Bytes all;
  for (int i = 0; i < 20; ++i) all = all + body;
  Code code(all);
  CodeMemory memory;
  ASSERT_TRUE(memory.open_near(code.range()));
  Patch patches[20];
  for (unsigned i = 0; i < 20; ++i) {
    Range function = {code.range().begin + 16 * i, code.range().begin + 16 * i + 16};
    ASSERT_STREQ(prepare(function, reinterpret_cast<const void*>(two), memory, &patches[i]), nullptr);
  }
  ASSERT_TRUE(memory.seal());
  ASSERT_STREQ(commit(patches, 20), nullptr);
  for (unsigned i = 0; i < 20; ++i) {
    EXPECT_EQ(Code::call(code.begin() + 16 * i), 2);
    EXPECT_EQ(Code::call(patches[i].original), 1);
  }
  EXPECT_EQ(protection_of(code.begin()), DWORD{PAGE_EXECUTE_READ});
  memory.release();
}

// ---- with threads ---------------------------------------------------------------------------------

// What brings the first bytes back.
Patch undo(const Patch& patch, const Bytes& before) {
  Patch back;
  back.entry = patch.entry;
  memcpy(back.jump, before.data(), kJumpSize);
  back.original = patch.original;
  return back;
}

TEST(patcher, replaces_a_function_that_threads_are_running) {
  // Single bytes, so that threads are met between them.
  Code code(no_operations(5) + returning(1));
  Bytes before = code.head(kJumpSize);
  std::atomic<bool> done{false};
  std::atomic<unsigned> wrong{0}, seen[3] = {};
  auto run = [&] {
    while (!done) {
      int result = code.call();
      if (result == 1 || result == 2)
        ++seen[result];
      else
        ++wrong;
    }
  };
  std::thread threads[] = {std::thread(run), std::thread(run), std::thread(run)};
  constexpr unsigned kTimes = 100;  // every byte is met many times in these
  CodeMemory memories[kTimes];
  for (CodeMemory& memory : memories) {
    ASSERT_TRUE(memory.open_near(code.range()));
    Patch patch;
    ASSERT_STREQ(prepare(code.range(), reinterpret_cast<const void*>(two), memory, &patch), nullptr);
    ASSERT_TRUE(memory.seal());
    ASSERT_STREQ(commit(&patch, 1), nullptr);
    Patch back = undo(patch, before);
    ASSERT_STREQ(commit(&back, 1), nullptr);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(seen[1], 0u);
  EXPECT_GT(seen[2], 0u);
  for (CodeMemory& memory : memories) memory.release();
}

#if defined(__x86_64__)
auto& position_in(CONTEXT& context) { return context.Rip; }
#else
auto& position_in(CONTEXT& context) { return context.Eip; }
#endif

// A thread that stands at an address of our choice, and has run nothing yet.
class StandingThread {
 public:
  explicit StandingThread(const uint8_t* at) {
    thread_ = CreateThread(nullptr, 0, nothing, nullptr, CREATE_SUSPENDED, nullptr);
    CONTEXT context = read();
    position_in(context) = reinterpret_cast<uintptr_t>(at);
    SetThreadContext(thread_, &context);
  }
  ~StandingThread() {
    TerminateThread(thread_, 0);
    CloseHandle(thread_);
  }
  const uint8_t* position() const {
    CONTEXT context = read();
    return reinterpret_cast<const uint8_t*>(static_cast<uintptr_t>(position_in(context)));
  }

 private:
  static DWORD WINAPI nothing(void*) { return 0; }
  CONTEXT read() const {
    CONTEXT context = {};
    context.ContextFlags = CONTEXT_CONTROL;
    EXPECT_TRUE(GetThreadContext(thread_, &context));
    return context;
  }
  HANDLE thread_;
};

TEST(patcher, leads_threads_out_of_the_bytes_it_writes) {
  // inc eax (two bytes) three times; a thread at the third byte has one behind it.
  Code code(Bytes{0xFF, 0xC0, 0xFF, 0xC0, 0xFF, 0xC0} + returning(1));
  StandingThread inside(code.begin() + 2), at_entry(code.begin()), behind(code.begin() + 6);
  Replaced replaced(code);
  ASSERT_STREQ(replaced.problem, nullptr);
  EXPECT_EQ(inside.position(), replaced.patch.original + 2);
  EXPECT_EQ(at_entry.position(), code.begin());
  EXPECT_EQ(behind.position(), code.begin() + 6);
}

TEST(patcher, counts_moved_instructions_that_grew) {
  // xor eax, eax; jc (2 bytes, 6 when moved); nop; a thread stands at the nop.
  Code code(Bytes{0x31, 0xC0, 0x72, 0x07, 0x90} + returning(7) + returning(9));
  StandingThread inside(code.begin() + 4);
  Replaced replaced(code);
  ASSERT_STREQ(replaced.problem, nullptr);
  EXPECT_EQ(inside.position(), replaced.patch.original + 8);
}

TEST(patcher, leaves_a_function_whose_thread_cannot_be_moved) {
  Code code(Bytes{0xFF, 0xC0, 0xFF, 0xC0, 0xFF, 0xC0} + returning(1));
  StandingThread within_instruction(code.begin() + 1);
  Bytes before = code.head(16);
  Replaced replaced(code);
  EXPECT_STREQ(replaced.problem, "holds a thread that cannot be moved out of the way");
  EXPECT_EQ(code.head(16), before);
  EXPECT_EQ(protection_of(code.begin()), DWORD{PAGE_EXECUTE_READ});
}

TEST(patcher, lets_stopped_threads_go_on) {
  std::atomic<unsigned> steps{0};
  std::atomic<bool> done{false};
  std::thread thread([&] {
    while (!done) ++steps;
  });
  Code code(returning(1));
  Replaced replaced(code);
  unsigned before = steps;
  for (int i = 0; i < 500 && steps == before; ++i) Sleep(10);
  EXPECT_NE(steps, before);
  done = true;
  thread.join();
}

// Each thread makes the next and ends: while one is stopped there may be others already.
std::atomic<unsigned> g_chains{0};
std::atomic<bool> g_no_more{false};

DWORD WINAPI go_on_in_another(void*) {
  HANDLE next = nullptr;
  if (!g_no_more) next = CreateThread(nullptr, 0, go_on_in_another, nullptr, 0, nullptr);
  if (next == nullptr) --g_chains;
  CloseHandle(next);
  return 0;
}

TEST(patcher, ends_while_threads_make_threads) {
  constexpr unsigned kChains = 2;
  for (g_chains = 0; g_chains < kChains; ++g_chains)
    CloseHandle(CreateThread(nullptr, 0, go_on_in_another, nullptr, 0, nullptr));
  for (int round = 0; round < 3; ++round) {
    Code code(returning(1));
    Replaced replaced(code);
    EXPECT_EQ(code.call(), replaced.problem == nullptr ? 2 : 1);
  }
  g_no_more = true;
  while (g_chains != 0) Sleep(1);
}

// ---- following code -------------------------------------------------------------------------------

TEST(patcher, follows_jumps_within_the_image) {
  Code code(Bytes{0xEB, 0x0E} + Bytes(14, 0xCC) + Bytes{0xE9, 0x0B, 0, 0, 0} + Bytes(11, 0xCC) + returning(5));
  EXPECT_EQ(follow_jumps(code.begin(), code.range()), code.begin() + 32);
  EXPECT_EQ(follow_jumps(code.begin() + 32, code.range()), code.begin() + 32);
  Range first_part = {code.range().begin, code.range().begin + 32};
  EXPECT_EQ(follow_jumps(code.begin(), first_part), code.begin() + 16);
}

TEST(patcher, follows_jumps_in_a_circle_to_an_end) {
  Code code(Bytes{0xEB, 0xFE});
  EXPECT_EQ(follow_jumps(code.begin(), code.range()), code.begin());
}

TEST(patcher, tells_what_a_function_leads_to) {
  // call +11 (to 16); ret   and at 16: jmp to 32
  Code code(Bytes{0xE8, 0x0B, 0, 0, 0, 0xC3} + Bytes(10, 0xCC) + Bytes{0xEB, 0x0E} + Bytes(14, 0xCC) + returning(5));
  EXPECT_TRUE(leads_to(code.range(), code.begin() + 32, code.range()));
  EXPECT_FALSE(leads_to(code.range(), code.begin() + 16, code.range()));
  Range last = {code.range().begin + 32, code.range().end};
  EXPECT_FALSE(leads_to(last, code.begin() + 32, code.range()));
}

TEST(patcher, tells_whether_a_function_ends_in_a_tail_call) {
  // xor eax, eax; jmp to 16   and there: test eax, eax; je over the return; ret; jmp back
  Code code(Bytes{0x31, 0xC0, 0xEB, 0x0C} + Bytes(12, 0xCC) + Bytes{0x85, 0xC0, 0x74, 0x01, 0xC3, 0xEB, 0xF9});
  EXPECT_TRUE(ends_in_tail_call(code.range(), code.range()));
  Range second = {code.range().begin + 16, code.range().end};
  EXPECT_FALSE(ends_in_tail_call(second, code.range()));
  Range elsewhere = {code.range().end, code.range().end + 16};
  EXPECT_FALSE(ends_in_tail_call(code.range(), elsewhere));
}

TEST(patcher, tells_nothing_of_functions_behind) {
  // je to 48; ret   and at 16: jmp to 32
  Code code(Bytes{0x0F, 0x84, 0x2A, 0, 0, 0, 0xC3} + Bytes(9, 0xCC) + Bytes{0xEB, 0x0E} + Bytes(14, 0xCC) +
            returning(5) + Bytes(10, 0xCC) + returning(6));
  EXPECT_FALSE(leads_to(code.range(), code.begin() + 32, code.range()));
  Range other = {code.range().begin + 16, code.range().end};
  EXPECT_TRUE(leads_to(other, code.begin() + 32, code.range()));
}

}  // namespace
