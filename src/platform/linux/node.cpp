// The memory node of the processor that the thread runs on. Only by the kernel's own function: the system call may be
// what a sandbox ends the process for, and takes ten times as long. (64-bit ARM has none.)
#include "platform/linux/kernel_function.h"
#include "platform/platform.h"

namespace rh::platform {

namespace {

using GetProcessor = long(unsigned* processor, unsigned* node, void* unused);

long first_node(unsigned* processor, unsigned* node, void*) {
  *processor = *node = 0;
  return 0;
}

constinit KernelFunction<GetProcessor> g_get_processor{"__vdso_getcpu", first_node};

}  // namespace

unsigned node() {
  unsigned processor = 0, node = 0;
  g_get_processor.get()(&processor, &node, nullptr);
  return node % kMostNodes;
}

}  // namespace rh::platform
