// The start and end of a library that the loader, or the program's start, runs the constructors of.
#include "entry/lifetime.h"

#include "entry/start.h"
#include "heap/idle.h"

namespace rh::lifetime {

namespace {

[[gnu::constructor(101)]] void on_load() { begin(); }

[[gnu::destructor(101)]] void on_end() {
  end();
  // The code it runs may be about to go, with a library that is unloaded.
  idle::do_without_helper();
}

}  // namespace

const void* anchor() { return reinterpret_cast<const void*>(&on_load); }

}  // namespace rh::lifetime
