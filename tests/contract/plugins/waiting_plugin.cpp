// While this library is loaded, the loading thread waits here for another thread. The program provides both ends.
extern "C" void waiting_plugin_entered();

namespace {
__attribute__((constructor)) void enter() { waiting_plugin_entered(); }
}  // namespace
