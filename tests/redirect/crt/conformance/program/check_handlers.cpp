// New mode, new handler, operator new.
#include "checks.h"

namespace {

constexpr DWORD kCxxException = 0xE06D7363;

// As set here: some groups can set it and not tell it.
int new_mode;

int set_new_mode(const Twins& twins, int mode) {
  new_mode = mode;
  return twins.set_new_mode(mode);
}

template <typename Attempt> void attempt(const Twins& twins, const char* name, int successes, Attempt call) {
  Line line("%s%s%s", twins.prefix, name, twins.suffix);
  line.say(" new mode %d, handler says yes %d times:", new_mode, successes);
  new_handler_succeeds(successes);
  line.say(call() == nullptr ? " null" : " BLOCK");
}

void check_all(const Twins& twins, int successes) {
  void* block = twins.malloc(100);
  constexpr size_t kTooMuch = kMost - 100;
  constexpr size_t kOverHalf = kHalf + 1;
  attempt(twins, "malloc", successes, [&] { return twins.malloc(kTooMuch); });
  attempt(twins, "malloc(half)", successes, [&] { return twins.malloc(kOverHalf); });
  attempt(twins, "malloc(max)", successes, [&] { return twins.malloc(kMost); });
  attempt(twins, "calloc", successes, [&] { return twins.calloc(1, kTooMuch); });
  attempt(twins, "calloc(half)", successes, [&] { return twins.calloc(1, kOverHalf); });
  attempt(twins, "calloc(overflow)", successes, [&] { return twins.calloc(2, kOverHalf); });
  attempt(twins, "realloc", successes, [&] { return twins.realloc(block, kTooMuch); });
  attempt(twins, "realloc(half)", successes, [&] { return twins.realloc(block, kOverHalf); });
  attempt(twins, "realloc(null)", successes, [&] { return twins.realloc(nullptr, kOverHalf); });
  if (twins.expand != nullptr) attempt(twins, "_expand", successes, [&] { return twins.expand(block, kOverHalf); });
  if (twins.recalloc != nullptr) {
    attempt(twins, "_recalloc", successes, [&] { return twins.recalloc(block, 1, kOverHalf); });
    attempt(twins, "_recalloc(null)", successes, [&] { return twins.recalloc(nullptr, 1, kOverHalf); });
    attempt(twins, "_recalloc(overflow)", successes, [&] { return twins.recalloc(block, 2, kOverHalf); });
  }
  if (twins.aligned_malloc != nullptr)
    attempt(twins, "_aligned_malloc", successes, [&] { return twins.aligned_malloc(kOverHalf, 64); });
  twins.free(block);
}

// A handler that can help: it gives back address space that nothing else has left. Only a 32-bit process
// can have so little.
void* reserve;

int __cdecl free_the_reserve(size_t size) {
  new_handler(size);
  if (reserve == nullptr) return 0;
  VirtualFree(reserve, 0, MEM_RELEASE);
  reserve = nullptr;
  return 1;
}

void check_handler_that_frees(const Twins& twins) {
  constexpr size_t kReserve = 256 * kMiB;
  constexpr int kMostFillers = 4096;
  static void* fillers[kMostFillers];
  int count = 0;
  reserve = VirtualAlloc(nullptr, kReserve, MEM_RESERVE, PAGE_NOACCESS);
  for (size_t size = 64 * kMiB; size >= kMiB; size /= 2) {
    while (count < kMostFillers &&
           (fillers[count] = VirtualAlloc(nullptr, size, MEM_RESERVE, PAGE_NOACCESS)) != nullptr) {
      count++;
    }
  }
  twins.set_new_handler(free_the_reserve);
  {
    Line line("%smalloc%s(200 MiB) with a handler that frees", twins.prefix, twins.suffix);
    void* block = twins.malloc(200 * kMiB);
    line.say(block != nullptr ? " block" : " null");
    twins.free(block);
  }
  while (count > 0) VirtualFree(fillers[--count], 0, MEM_RELEASE);
}

void check_throw(const char* name, void*(__cdecl* function)(size_t)) {
  Line line("%s too much", name);
  new_handler_succeeds(2);
  void* block = nullptr;
  DWORD code = guarded([&] { block = function(kHalf + 1); }).code;
  if (code != 0)
    line.say(code == kCxxException ? " throws" : " FAULTS");
  else
    line.say(block == nullptr ? " null" : " BLOCK");
}

void check_operator(const char* name, void*(__cdecl* make)(size_t), void(__cdecl* destroy)(void*)) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, kMiB}) {
    Line line("%s %Iu bytes", name, size);
    void* block = make(size);
    tell_block(line, crt.plain, block, size);
    destroy(block);
  }
  destroy(nullptr);
  crt.plain.free(make(100));
  destroy(crt.plain.malloc(100));
}

}  // namespace

void check_new_handler(const Twins& twins) {
  if (twins.set_new_handler == nullptr || twins.set_new_mode == nullptr) return;
  twins.set_new_handler(new_handler);
  if (twins.callnewh != nullptr) {
    Line line("%s_callnewh", twins.prefix);
    new_handler_succeeds(1);
    line.say(" %d", twins.callnewh(1));
    line.say(" %d", twins.callnewh(1));
  }
  check_all(twins, 2);
  Line("%s_set_new_mode", twins.prefix).say(" %d", set_new_mode(twins, 1));
  check_all(twins, 0);
  check_all(twins, 3);
  if (sizeof(void*) == 4) check_handler_that_frees(twins);
  twins.set_new_handler(nullptr);
  attempt(twins, "malloc without a handler", 0, [&] { return twins.malloc(kHalf + 1); });
  Line("%s_set_new_mode", twins.prefix).say(" %d", set_new_mode(twins, 0));
}

void check_operators() {
  if (crt.operator_new == nullptr) return;
  check_operator("operator new", crt.operator_new, crt.operator_delete);
  check_throw("operator new", crt.operator_new);
  if (crt.plain.set_new_handler != nullptr) {
    crt.plain.set_new_handler(new_handler);
    check_throw("operator new with a handler", crt.operator_new);
    crt.plain.set_new_handler(nullptr);
  }
  if (crt.operator_new_array == nullptr) return;
  check_operator("operator new[]", crt.operator_new_array, crt.operator_delete_array);
  check_throw("operator new[]", crt.operator_new_array);
}
