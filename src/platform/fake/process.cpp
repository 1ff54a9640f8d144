// Failing calls, messages and process information: these are real.
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "platform/fake/state.h"
#include "platform/fake/system.h"
#include "platform/platform.h"
#include "platform/refusal.h"

namespace rh::fake {

namespace {

struct Switch {
  std::atomic<size_t> calls{0};
  std::atomic<size_t> failing{0};  // the number of the call that fails
  std::atomic<size_t> failing_from{SIZE_MAX};
};

constinit Switch g_switches[static_cast<size_t>(Call::count)];

Switch& switch_of(Call kind) { return g_switches[static_cast<size_t>(kind)]; }

constinit pthread_mutex_t g_process_mutex = PTHREAD_MUTEX_INITIALIZER;
constinit char g_errors[64 * 1024] = {};
constinit size_t g_errors_length = 0;

constinit uintptr_t g_image = 0;
constinit uint64_t g_process_id = 0;
constinit platform::LookAtFault* g_look_at_fault = nullptr;
constinit std::atomic<unsigned> g_node{0};
constinit uintptr_t g_stack[platform::kMostFrames] = {};
constinit unsigned g_stack_frames = 0;
using StackHook = void (*)();
constinit StackHook g_stack_hook = nullptr;
constinit std::atomic<void (*)()> g_on_signal{nullptr};
constinit Told g_told = {};

void tell(uintptr_t block, uint64_t size, uint64_t stands_for) {
  pthread_mutex_lock(&g_process_mutex);
  g_told = {block, size, stands_for, g_told.count + 1};
  pthread_mutex_unlock(&g_process_mutex);
}

}  // namespace

bool fails(Call kind) {
  Switch& own = switch_of(kind);
  size_t number = own.calls.fetch_add(1) + 1;
  return number == own.failing.load() || number >= own.failing_from.load();
}

void fail_nth(Call kind, size_t nth) {
  Switch& own = switch_of(kind);
  own.failing.store(nth == 0 ? 0 : own.calls.load() + nth);
}

void fail_from(Call kind, size_t nth) {
  Switch& own = switch_of(kind);
  own.failing_from.store(nth == 0 ? SIZE_MAX : own.calls.load() + nth);
}

void fail_all(Call kind, bool failing) { fail_from(kind, failing ? 1 : 0); }

size_t calls(Call kind) { return switch_of(kind).calls.load(); }

void set_node(unsigned node) { g_node.store(node); }

void set_process_id(uint64_t id) { g_process_id = id; }

void set_stack(const uintptr_t* frames, unsigned count) {
  Guard guard(g_process_mutex);
  g_stack_frames = count < platform::kMostFrames ? count : platform::kMostFrames;
  for (unsigned i = 0; i != g_stack_frames; ++i) g_stack[i] = frames[i];
}

void on_stack(StackHook hook) { g_stack_hook = hook; }

bool send_signal() {
  auto function = g_on_signal.load();
  if (function != nullptr) function();
  return function != nullptr;
}

void set_image_address(uintptr_t address) { g_image = address; }

bool fault(uintptr_t address, platform::Access access) {
  if (g_look_at_fault == nullptr) return false;
  g_look_at_fault(address, access);
  return true;
}

Told told() {
  Guard guard(g_process_mutex);
  return g_told;
}

const char* errors() { return g_errors; }

void clear_errors() {
  Guard guard(g_process_mutex);
  g_errors_length = 0;
  g_errors[0] = 0;
}

}  // namespace rh::fake

namespace rh::platform {

unsigned node() { return fake::g_node.load(); }

using namespace fake;

namespace {

bool write_all(int handle, const char* text, size_t length) {
  while (length != 0) {
    auto written = ::write(handle, text, static_cast<unsigned>(length));
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    text += written;
    length -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

// The first choice among the places for a 64-bit realm is the default space then, the later ones lie elsewhere.
uint64_t random_seed() { return 1024; }

uint64_t random_secret() { return 0x5ec2e7a11e57; }
uintptr_t image_address() { return g_image; }
bool image_may_go() { return false; }

unsigned stack(uintptr_t* frames, unsigned most) {
  if (g_stack_hook != nullptr) g_stack_hook();
  Guard guard(g_process_mutex);
  const unsigned count = g_stack_frames < most ? g_stack_frames : most;
  for (unsigned i = 0; i != count; ++i) frames[i] = g_stack[i];
  return count;
}

bool find_code(uintptr_t address, CodePlace* place) {
  constexpr size_t kSize = size_t{1} << 20;
  if (g_image == 0 || address - g_image >= kSize) return false;
  *place = {"program", address - g_image};
  return true;
}

void each_module(void (*visit)(const Module& module, void* context), void* context) {
  constexpr unsigned char kBuildId[] = {0x01, 0xfe};
  visit({kModuleStart, kModuleEnd, 0x1000, "/fake/program", 13, kBuildId, sizeof(kBuildId)}, context);
}

uint64_t process_id() { return g_process_id != 0 ? g_process_id : static_cast<uint64_t>(getpid()); }
const char* environment(const char* name) { return getenv(name); }

void each_variable(void (*visit)(const char* entry)) {
  for (char** entry = environ; *entry != nullptr; ++entry) visit(*entry);
}

void write_error(const char* text, size_t length) {
  {
    Guard guard(g_process_mutex);
    size_t room = sizeof(g_errors) - 1 - g_errors_length;
    size_t kept = length < room ? length : room;
    __builtin_memcpy(g_errors + g_errors_length, text, kept);
    g_errors[g_errors_length += kept] = 0;
  }
  write_all(2, text, length);
}

FileWriter::FileWriter(const char* path, How how) : handle_(system::open_file(path, how == How::replace)) {
  if (!is_open()) refusal_ = platform::refusal(errno);
}

FileWriter::~FileWriter() {
  if (is_open()) close(static_cast<int>(handle_));
}

void FileWriter::write(const char* text, size_t length) {
  if (is_whole() && !write_all(static_cast<int>(handle_), text, length)) refusal_ = platform::refusal(errno);
}

void probe_allocated(const void* block, uint64_t size, uint64_t stands_for) {
  tell(reinterpret_cast<uintptr_t>(block), size, stands_for);
}

void probe_freed(const void* block) { tell(reinterpret_cast<uintptr_t>(block), 0, 0); }

void probe_misuse(const char*, uintptr_t) {}

void on_fault(LookAtFault* look) { g_look_at_fault = look; }

void forget_faults() { g_look_at_fault = nullptr; }

bool may_listen(uint64_t number) { return number == fake::kSignal; }

bool listen(uint64_t, void (*function)()) {
  g_on_signal.store(function);
  return function != nullptr;
}

void stop_listening() {}

void abort_process() { abort(); }

void end_process(int code) { _exit(code); }

}  // namespace rh::platform
