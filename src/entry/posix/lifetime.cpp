// The start and end of a library that the loader, or the program's start, runs the constructors of.
#include "entry/lifetime.h"

#include "entry/copies.h"
#include "entry/start.h"
#include "hardened/hardened.h"
#include "heap/idle.h"
#include "heap/registry.h"
#include "platform/platform.h"

extern "C" {
int __cxa_atexit(void (*function)(void*), void* argument, void* image);
void __cxa_finalize(void* image);
}

namespace rh::lifetime {

namespace {

// Whether exit() is why the destructors run, and not dlclose: before any of them it calls what it was given for that.
constinit bool g_exits = false;

void note_exit(void*) { g_exits = true; }

[[gnu::constructor(101)]] void on_load() {
  copies::announce();
  begin();
  if (!platform::image_may_go() || __cxa_atexit(note_exit, nullptr, &g_exits) != 0) g_exits = true;
}

// The library is unloaded while the process goes on. Blocks of its own may live on with others: then the memory stays.
void leave() {
  copies::withdraw();
  __cxa_finalize(&g_exits);  // so that exit() will not call note_exit
  platform::forget_faults();
  platform::stop_listening();
  if constexpr (kHardened) hardened::flush_all();
  registry::release_unused();
}

[[gnu::destructor(101)]] void on_end() {
  end();
  // The code it runs may be about to go, with a library that is unloaded.
  idle::do_without_helper();
  if (!g_exits) leave();
}

}  // namespace

const void* anchor() { return reinterpret_cast<const void*>(&on_load); }

}  // namespace rh::lifetime
