// conformance CRT [REHEAP-DLL [first]]: exercises the allocation functions of a CRT DLL through its exports
// and writes what it sees, a line a check. reheap.dll is loaded after the CRT, or with `first` before it.
#include "checks.h"

namespace {

void check_twins(const Twins& twins) {
  if (twins.malloc == nullptr || twins.free == nullptr) return;
  watch(twins);
  check_malloc(twins);
  check_calloc(twins);
  check_realloc(twins);
  check_recalloc(twins);
  check_expand(twins);
  check_msize(twins);
  check_aligned(twins);
  check_copies(twins);
  check_heap(twins);
  check_new_handler(twins);
  check_released(twins);
}

bool load(int count, char** arguments) {
  const char* reheap = count > 2 ? arguments[2] : nullptr;
  bool reheap_first = count > 3;
  if (reheap_first && !load_reheap(reheap)) return false;
  if (!load_crt(arguments[1]) || !spy_on_crt()) return false;
  if (!reheap_first) {
    make_early_blocks();
    make_early_inside();
  }
  return reheap == nullptr || reheap_first || load_reheap(reheap);
}

}  // namespace

int run(int count, char** arguments) {
  if (count < 2 || !load(count, arguments)) {
    fail("cannot load what is to be tested");
    return 2;
  }
  print_identity();
  watch(crt.plain);
  if (count < 4) check_early_blocks();
  check_twins(crt.plain);
  check_twins(crt.o);
  check_twins(crt.base);
  watch(crt.plain);
  check_operators();
  check_mixed_twins();
  check_inside();
  Line("end").say(" %d failures", failures());
  return failures() == 0 ? 0 : 1;
}
