// A library with a mebibyte of variables for each thread, which the loader allocates when the thread first names them
// and frees when the stack of a thread that has ended goes back, with the lock of all stacks held.
namespace {

constexpr unsigned kBytes = 1 << 20;
thread_local volatile char variables[kBytes];

}  // namespace

extern "C" __attribute__((visibility("default"))) void plugin_touch_variables() {
  for (unsigned at = 0; at < kBytes; at += 4096) variables[at] = 1;
}
