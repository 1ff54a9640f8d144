// Time, threads and ownership.
#include <sched.h>

#include "base/bits.h"
#include "base/schedule.h"
#include "platform/fake/ledger.h"
#include "platform/fake/state.h"
#include "platform/fake/system.h"
#include "platform/lock.h"
#include "platform/platform.h"

namespace rh::fake {

namespace {

constinit std::atomic<uint64_t> g_now{1000};

// A thread by its number, which modulo the table's size is its index. Entries of ended threads are reused.
struct Record {
  std::atomic<uint32_t> number{0};
  std::atomic<bool> ended{true};
  uint32_t token = 0;
};

constexpr uint32_t kMostThreads = 4096;
constinit Record g_threads[kMostThreads];
constinit std::atomic<uint32_t> g_last_number{0};

Record& record_of(uint32_t thread) { return g_threads[thread % kMostThreads]; }

bool is_alive(uint32_t thread) {
  const Record& record = record_of(thread);
  return record.number.load() == thread && !record.ended.load();
}

constinit std::atomic<bool> g_others_are_gone{false};
constinit std::atomic<bool> g_single_threaded{false};
using Hook = void (*)();
constinit Hook g_back_off_hook = nullptr;
constinit std::atomic<platform::ThreadToken> g_terminated{0};
constinit std::atomic<bool> g_has_left_call{false};
constinit std::atomic<uint64_t> g_acquisitions{0};
constinit thread_local uint32_t t_played = 0;

// A thread is over after its last destructor: a key's destructor that asks to be called round after round runs late.
// The key holds the number with the rounds left; thread-local variables may be gone by then.
pthread_key_t ending_key();

constexpr uintptr_t kRounds = 3;  // of four: in the last, a sanitizer has left the thread already

void* ending(uint32_t thread, uintptr_t rounds) {
  return reinterpret_cast<void*>(uintptr_t{thread} * (kRounds + 1) + rounds);
}

void count_rounds(void* held) {
  uint32_t thread = static_cast<uint32_t>(address_of(held) / (kRounds + 1));
  uintptr_t rounds = address_of(held) % (kRounds + 1);
  if (rounds > 1)
    pthread_setspecific(ending_key(), ending(thread, rounds - 1));
  else
    end_thread(thread);
}

constinit pthread_once_t g_key_once = PTHREAD_ONCE_INIT;
constinit pthread_key_t g_key = 0;

pthread_key_t ending_key() {
  pthread_once(&g_key_once, [] { pthread_key_create(&g_key, count_rounds); });
  return g_key;
}

uint32_t played() {
  if (t_played == 0) {
    t_played = make_thread();
    pthread_setspecific(ending_key(), ending(t_played, kRounds));
  }
  return t_played;
}

// ---- the helper: a real thread, in step with the test -------------------------------------------

enum class Helper { none, wanted, runs, waits };

constinit pthread_mutex_t g_thread_mutex = PTHREAD_MUTEX_INITIALIZER;
constinit pthread_cond_t g_changed = PTHREAD_COND_INITIALIZER;
constinit Helper g_helper = Helper::none;
using Main = void (*)();
constinit Main g_helper_main = nullptr;
constinit uint64_t g_helper_waits_ms = 0;
constinit thread_local bool t_is_helper = false;

// The caller must hold the mutex.
void set_helper(Helper state) {
  g_helper = state;
  pthread_cond_broadcast(&g_changed);
}

void until_helper_rests() {
  while (g_helper == Helper::runs) pthread_cond_wait(&g_changed, &g_thread_mutex);
}

void* run_helper(void*) {
  t_is_helper = true;
  g_helper_main();
  Guard guard(g_thread_mutex);
  set_helper(Helper::none);
  return nullptr;
}

void launch_helper() {
  pthread_t thread;
  set_helper(Helper::runs);
  if (pthread_create(&thread, nullptr, run_helper, nullptr) != 0)
    broken("the system has no thread for the helper", 0, 0);
  pthread_detach(thread);
  until_helper_rests();
}

void helper_waits(uint64_t timeout_ms) {
  Guard guard(g_thread_mutex);
  g_helper_waits_ms = timeout_ms;
  set_helper(Helper::waits);
  while (g_helper == Helper::waits) pthread_cond_wait(&g_changed, &g_thread_mutex);
}

}  // namespace

void set_clock(uint64_t now_ms) { g_now.store(now_ms); }
void advance(uint64_t ms) { g_now.fetch_add(ms); }

uint32_t make_thread(uint32_t token) {
  for (uint32_t attempt = 0; attempt < kMostThreads; ++attempt) {
    uint32_t thread = g_last_number.fetch_add(1) + 1;
    Record& record = record_of(thread);
    bool ended = true;
    // No thread has the number 0.
    if (thread == 0 || !record.ended.compare_exchange_strong(ended, false)) continue;
    // Tokens 0, 1 and 3 are reserved.
    record.token = token != 0 ? token : (thread % kMostThreads + 1) * 4;
    record.number.store(thread);
    return thread;
  }
  broken("more threads alive than the fake counts", 0, kMostThreads);
}

uint32_t become(uint32_t thread) {
  uint32_t before = played();
  t_played = thread;
  return before;
}

void end_thread(uint32_t thread) { record_of(thread).ended.store(true); }

uint64_t acquisitions() { return g_acquisitions.load(); }

void on_back_off(void (*hook)()) { g_back_off_hook = hook; }

void set_single_threaded(bool single) { g_single_threaded.store(single); }
void set_others_are_gone(bool gone) { g_others_are_gone.store(gone); }
void set_terminated(platform::ThreadToken token) { g_terminated.store(token); }
void set_has_left_call(bool has_left) { g_has_left_call.store(has_left); }

bool step_helper() {
  Guard guard(g_thread_mutex);
  if (g_helper == Helper::none) return false;
  if (g_helper == Helper::wanted) launch_helper();
  if (g_helper == Helper::waits) {
    g_now.fetch_add(g_helper_waits_ms);
    set_helper(Helper::runs);
    until_helper_rests();
  }
  return g_helper != Helper::none;
}

bool helper_is_there() {
  Guard guard(g_thread_mutex);
  return g_helper != Helper::none;
}

}  // namespace rh::fake

namespace rh::platform {

using namespace fake;

uint64_t now_ms() { return g_now.load(); }

ThreadToken thread_token() { return record_of(played()).token; }

uint64_t thread_id() { return played(); }

bool is_single_threaded() { return g_single_threaded.load(); }

void back_off(unsigned) {
  if (g_back_off_hook != nullptr) return g_back_off_hook();
  sched_yield();
}

bool others_are_gone() { return g_others_are_gone.load(); }
bool has_left_call(const void*) { return g_has_left_call.load(); }
bool thread_is_gone(ThreadToken token) { return token != 0 && token == g_terminated.load(); }

void wait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ms) {
  count_os_call(OsCall::wait);
  if (word.load() != expected) return;
  if (t_is_helper)
    helper_waits(timeout_ms);
  else
    sched_yield();
}

void wake(const std::atomic<uint32_t>&) { count_os_call(OsCall::wake); }

bool start_helper(void (*main)(), bool (*is_wanted)()) {
  Guard guard(g_thread_mutex);
  if (g_helper != Helper::none || !is_wanted()) return false;
  count_os_call(OsCall::thread);
  if (fails(Call::start_helper)) return false;
  g_helper_main = main;
  set_helper(Helper::wanted);
  return true;
}

void stop_helper(const std::atomic<uint32_t>& stop) {
  Guard guard(g_thread_mutex);
  if (stop.load() == 0) broken("the helper is not told to end", 0, 0);
  if (g_helper == Helper::wanted) set_helper(Helper::none);
  if (g_helper == Helper::waits) set_helper(Helper::runs);
  until_helper_rests();
  if (g_helper != Helper::none) broken("the helper goes on though it is told to end", 0, 0);
}

bool helper_is_lost() { return g_helper != Helper::none && thread_is_gone(kHelperToken); }

void forget_helper() { g_helper = Helper::none; }

namespace {

// The number of the thread that owns it, or owned it while alive.
std::atomic<uint32_t>& owner_of(unsigned char* storage) { return *reinterpret_cast<std::atomic<uint32_t>*>(storage); }

}  // namespace

void prepare() {}

void Ownership::reset() { owner_of(storage_).store(0); }

bool Ownership::try_acquire() {
  schedule_point();
  uint32_t owner = owner_of(storage_).load();
  if (owner != 0 && is_alive(owner)) return false;
  if (!owner_of(storage_).compare_exchange_strong(owner, played())) return false;
  fake::g_acquisitions.fetch_add(1);
  return true;
}

void Ownership::release() {
  if (owner_of(storage_).load() != played()) broken("a thread gives up what it does not own", address_of(storage_), 0);
  owner_of(storage_).store(0);
  schedule_point();
}

bool Ownership::is_mine() const { return owner_of(const_cast<unsigned char*>(storage_)).load() == played(); }

bool Ownership::is_free() const { return !is_alive(owner_of(const_cast<unsigned char*>(storage_)).load()); }

bool Ownership::drop() { return true; }

void note_streams_allocate() {}

void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  system::on_fork(before, in_parent, in_child);
}

std::atomic<uint32_t>* make_shared_counter() { return system::make_shared_counter(); }

}  // namespace rh::platform
