// semantics [REHEAP-DLL]: exercises the heap functions by their exported names and writes what it sees, a line a check.
// reheap.dll is loaded once blocks have been made; or it is in the process already, or never comes.
#include "checks.h"

namespace {

void check_subject(const Subject& subject) {
  check_null(subject);
  check_alloc(subject);
  check_absurd(subject);
  check_realloc(subject);
  check_zeroed_growth(subject);
  check_in_place(subject);
  check_raising(subject);
  check_threads(subject);
  check_lock(subject);
}

void check_door(const Door& door) {
  constexpr DWORD kRaisingUnserialized = HEAP_GENERATE_EXCEPTIONS | HEAP_NO_SERIALIZE;
  Private heap(door), unserialized(door, HEAP_NO_SERIALIZE), raising(door, HEAP_GENERATE_EXCEPTIONS),
      both(door, kRaisingUnserialized), executable(door, HEAP_CREATE_ENABLE_EXECUTE), maximum(door, 0, 16 * kMiB);
  size_t largest = &door == &kernel32 ? 64 * kMiB : 4 * kMiB;  // once: most of the time goes into their pages
  check_subject({door, "process", GetProcessHeap(), Maker::reheap, largest});
  check_subject({door, "private", heap, Maker::reheap, largest});
  check_subject({door, "unserialized", unserialized, Maker::reheap, 4 * kMiB});
  check_subject({door, "raising", raising, Maker::reheap, 4 * kMiB});
  check_subject({door, "raising unserialized", both, Maker::reheap, kMiB});
  check_subject({door, "executable", executable, Maker::system, kMiB});
  check_subject({door, "at most 16M", maximum, Maker::system, 400 * kKiB});
  check_create(door);
  check_maximum(door);
  check_executable(door);
  check_destroy(door);
  check_bad_pointers(door);
}

}  // namespace

int main(int count, char** arguments) {
  install_guard();
  if (!find_functions()) {
    fail("a heap function is not there");
    return 2;
  }
  find_reheap();
  make_early_blocks();
  if (count > 1 && !load_reheap(arguments[1])) {
    fail("cannot load %s", arguments[1]);
    return 2;
  }
  Line("system").say(" %s", system_name());
  check_early_blocks();
  check_door(kernel32);
  check_door(ntdll);
  check_growth_figures();
  check_walk();
  check_information();
  check_user_values();
  check_multiple();
  check_movable();
  check_given();
  check_task_memory();
  check_strings();
  check_crt();
  tell_makers();
  Line("end").say(" %d failures", failures());
  return failures() == 0 ? 0 : 1;
}
