// The counts as JSON. Written when all cores have ended, so printf may use the allocator.
#include <cinttypes>
#include <cstdio>

#include "coherence.h"
#include "places.h"

namespace coherence {

namespace {

constexpr unsigned kMostPlaces = 60;

void print_totals(const Counts& all) {
  struct {
    const char* name;
    uint64_t value;
  } const figures[] = {
      {"operations", all.operations},
      {"accesses", all.accesses},
      {"misses", all.misses()},
      {"stalls", all.stalls},
      {"misses_clean", all.misses_clean},
      {"misses_modified", all.misses_modified},
      {"upgrades", all.upgrades},
      {"read_modify_writes", all.read_modify_writes},
      {"pages", all.pages},
      {"pages_of_others", all.pages_of_others},
      {"holds", all.holds},
      {"hold_accesses", all.hold_accesses},
      {"hold_misses", all.hold_misses},
      {"hold_stalls", all.hold_stalls},
      {"unplaced_misses", places::unplaced()},
  };
  for (auto [name, value] : figures) printf("\"%s\": %" PRIu64 ",\n", name, value);
}

void print_locks() {
  const char* separator = "";
  printf("\"locks\": {");
  for (unsigned number = 0; number < kMostLockClasses; ++number) {
    const LockClass& what = lock_class(number);
    if (what.name == nullptr) continue;
    const Holds& holds = holds_of(number);
    printf("%s\n  \"%s\": {\"shared\": %s, \"holds\": %" PRIu64 ", \"accesses\": %" PRIu64 ", \"misses\": %" PRIu64
           ", \"most_misses\": %" PRIu64 "}",
           separator, what.name, what.shared ? "true" : "false", holds.holds, holds.accesses, holds.misses,
           holds.most_misses);
    separator = ",";
  }
  printf("},\n");
}

void print_places() {
  const char* separator = "";
  printf("\"places\": [");
  for (unsigned i = 0; i < kMostPlaces; ++i) {
    const places::Place* place = places::take_worst();
    if (place == nullptr) break;
    // The call that reported the access returns behind it: one less is within its line.
    printf("%s\n  {\"address\": %" PRIuPTR ", \"misses\": %" PRIu64 ", \"in_shared_holds\": %" PRIu64 "}", separator,
           place->address - 1, place->misses, place->in_shared_holds);
    separator = ",";
  }
  printf("]\n");
}

}  // namespace

void print_counts() {
  printf("{");
  print_totals(counts());
  print_locks();
  print_places();
  printf("}\n");
}

}  // namespace coherence
