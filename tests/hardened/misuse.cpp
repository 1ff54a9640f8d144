// Ways to misuse memory, each in a process of its own. For each it says what became of it:
//
//   stopped    the process was ended, by the allocator or by the processor
//   harmless   it could do nothing: what it was after was not there
//   unnoticed  neither
//
//   misuse           all of them, as a table
//   misuse NAME      those of that name, of each size; exits with 0 when all were stopped or harmless that should be
//   misuse all [NAMES…]  the table; exits with 0 when all were that should be, but for those names
//   misuse innocent  what looks like them and is allowed; exits with 0 when nothing was stopped
#include <string.h>

#include <algorithm>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "system.h"

namespace {

constexpr size_t kMebibyte = size_t{1} << 20;
constexpr char kSecret[] = "the words that nobody else may read";

enum class Outcome : int { unnoticed, harmless, stopped };

using Bytes = volatile unsigned char*;

// What compilers must not know: where a pointer comes from, and that it is never used again.
template <typename T> T* hidden(T* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

Bytes make(size_t size) { return static_cast<Bytes>(hidden(malloc(size))); }
void release(Bytes block) { free(hidden(const_cast<unsigned char*>(block))); }

// Whatever it was, it is another value now.
void change(Bytes from, size_t count) {
  for (size_t at = 0; at < count; ++at) from[at] = static_cast<unsigned char>(from[at] ^ 0xa5);
}

void fill(Bytes block, size_t size) {
  for (size_t at = 0; at < size; ++at) block[at] = static_cast<unsigned char>(kSecret[at % (sizeof(kSecret) - 1)]);
}

bool holds_secret(Bytes block, size_t size) {
  size_t run = 0, most = 0;
  for (size_t at = 0; at < size; ++at) {
    run = block[at] != 0 && strchr(kSecret, block[at]) != nullptr ? run + 1 : 0;
    most = std::max(most, run);
  }
  return most >= 8;
}

// A block between others of its size: of small ones so many that both its neighbours are among them.
struct Row {
  explicit Row(size_t size) : blocks(size < 10000 ? 1024 : 16) {
    for (Bytes& block : blocks) {
      block = make(size);
      fill(block, size);
    }
    std::sort(blocks.begin(), blocks.end());
  }
  Bytes middle() const { return blocks[blocks.size() / 2]; }
  void release_all() const {
    for (Bytes block : blocks) release(block);
  }
  std::vector<Bytes> blocks;
};

// What a program does that goes on: the allocator may look at things meanwhile.
void go_on(size_t size) {
  std::vector<Bytes> blocks;
  for (int round = 0; round < 3; ++round) {
    for (int count = 0; count < 600; ++count) blocks.push_back(make(count % 2 == 0 ? size : 2 * size));
    for (Bytes block : blocks) release(block);
    blocks.clear();
  }
}

using Crime = Outcome (*)(size_t size);

template <size_t count> Outcome overflow(size_t size) {
  Row row(size);
  change(row.middle() + size, count);
  row.release_all();
  go_on(size);
  return Outcome::unnoticed;
}

Outcome overflow_by_a_zero(size_t size) {
  Row row(size);
  Bytes end = row.middle() + size;
  if (*end == 0) return Outcome::harmless;
  *end = 0;
  row.release_all();
  go_on(size);
  return Outcome::unnoticed;
}

template <size_t count> Outcome underflow(size_t size) {
  Row row(size);
  for (size_t at = 1; at <= count; ++at) change(row.middle() - at, 1);
  row.release_all();
  go_on(size);
  return Outcome::unnoticed;
}

Outcome read_far_behind(size_t size) {
  Row row(size);
  unsigned sum = 0;
  for (size_t at = 0; at < kMebibyte; ++at) sum += row.middle()[size + at];
  return sum == 0 ? Outcome::harmless : Outcome::unnoticed;
}

Outcome read_far_before(size_t size) {
  Row row(size);
  unsigned sum = 0;
  for (size_t at = 1; at < kMebibyte; ++at) sum += row.middle()[-static_cast<ptrdiff_t>(at)];
  return sum == 0 ? Outcome::harmless : Outcome::unnoticed;
}

enum class Where { start, middle, end };

template <Where where> Outcome write_after_free(size_t size) {
  Row row(size);
  Bytes block = row.middle();
  release(block);
  constexpr size_t kCount = 4;
  change(block + (where == Where::start ? 0 : where == Where::middle ? size / 2 : size - kCount), kCount);
  go_on(size);
  return Outcome::unnoticed;
}

Outcome write_after_reuse(size_t size) {
  Row row(size);
  Bytes block = row.middle();
  release(block);
  Bytes other = make(size);
  fill(other, size);
  change(block, size);
  release(other);
  go_on(size);
  return Outcome::unnoticed;
}

Outcome read_after_free(size_t size) {
  Row row(size);
  Bytes block = row.middle();
  release(block);
  return holds_secret(block, size) ? Outcome::unnoticed : Outcome::harmless;
}

Outcome free_twice_at_once(size_t size) {
  Bytes block = make(size);
  release(block);
  release(block);
  return Outcome::unnoticed;
}

Outcome free_twice_later(size_t size) {
  Row row(size), other(size);
  release(row.middle());
  other.release_all();
  release(row.middle());
  return Outcome::unnoticed;
}

Outcome free_twice_with_another_between(size_t size) {
  Bytes one = make(size), other = make(size);
  release(one);
  release(other);
  release(one);
  return Outcome::unnoticed;
}

Outcome free_twice_after_a_write(size_t size) {
  Bytes block = make(size);
  release(block);
  fill(block, size);
  release(block);
  return Outcome::unnoticed;
}

Outcome free_twice_in_two_threads(size_t size) {
  Bytes block = make(size);
  release(block);
  std::thread([block] { release(block); }).join();
  return Outcome::unnoticed;
}

Outcome free_inside(size_t size) {
  release(make(size) + 16);
  return Outcome::unnoticed;
}

Outcome free_unaligned(size_t size) {
  release(make(size) + 1);
  return Outcome::unnoticed;
}

Outcome realloc_freed(size_t size) {
  Row row(size);
  release(row.middle());
  hidden(realloc(const_cast<unsigned char*>(row.middle()), size + 100));
  return Outcome::unnoticed;
}

Outcome realloc_inside(size_t size) {
  hidden(realloc(const_cast<unsigned char*>(make(size)) + 16, size + 100));
  return Outcome::unnoticed;
}

Outcome size_of_freed(size_t size) {
  Row row(size);
  release(row.middle());
  return malloc_usable_size(hidden(const_cast<unsigned char*>(row.middle()))) == 0 ? Outcome::harmless
                                                                                   : Outcome::unnoticed;
}

Outcome malloc_and_delete(size_t size) {
  ::operator delete(hidden(malloc(size)));
  return Outcome::unnoticed;
}

Outcome new_and_free(size_t size) {
  free(hidden(::operator new(size)));
  return Outcome::unnoticed;
}

Outcome new_and_delete_array(size_t size) {
  ::operator delete[](hidden(::operator new(size)));
  return Outcome::unnoticed;
}

Outcome array_and_delete(size_t size) {
  ::operator delete(hidden(::operator new[](size)));
  return Outcome::unnoticed;
}

Outcome array_and_free(size_t size) {
  free(hidden(::operator new[](size)));
  return Outcome::unnoticed;
}

Outcome delete_as_smaller(size_t size) {
  ::operator delete(hidden(::operator new(size)), size - 1);
  return Outcome::unnoticed;
}

Outcome delete_as_larger(size_t size) {
  ::operator delete(hidden(::operator new(size)), size + 64);
  return Outcome::unnoticed;
}

Outcome delete_array_as_smaller(size_t size) {
  ::operator delete[](hidden(::operator new[](size)), size / 2);
  return Outcome::unnoticed;
}

Outcome read_uninitialised(size_t size) {
  std::vector<Bytes> blocks;
  for (int count = 0; count < 400; ++count) {
    blocks.push_back(make(size));
    fill(blocks.back(), size);
  }
  for (Bytes block : blocks) release(block);
  for (Bytes& block : blocks) {
    block = make(size);
    if (holds_secret(block, size)) return Outcome::unnoticed;
  }
  return Outcome::harmless;
}

Outcome read_what_realloc_added(size_t size) {
  Row row(2 * size);
  row.release_all();
  for (int count = 0; count < 400; ++count) {
    Bytes block = make(size);
    Bytes longer = static_cast<Bytes>(hidden(realloc(const_cast<unsigned char*>(block), 2 * size)));
    if (holds_secret(longer + size, size)) return Outcome::unnoticed;
  }
  return Outcome::harmless;
}

Outcome foresee_reuse(size_t size) {
  for (int count = 0; count < 8; ++count) {
    Bytes block = make(size);
    release(block);
    Bytes next = make(size);
    if (next == block) return Outcome::unnoticed;
    release(next);
  }
  return Outcome::harmless;
}

// Whether one may say where the next block will lie from where the last two do.
Outcome foresee_order(size_t size) {
  int hits = 0;
  Bytes before = make(size), last = make(size);
  for (int count = 0; count < 64; ++count) {
    Bytes next = make(size);
    hits += next - last == last - before;
    before = last;
    last = next;
  }
  return hits > 32 ? Outcome::unnoticed : Outcome::harmless;
}

int g_global[16];

Outcome free_stack(size_t) {
  alignas(16) unsigned char array[64];
  release(hidden(array));
  return Outcome::unnoticed;
}

Outcome free_global(size_t) {
  free(hidden(g_global));
  return Outcome::unnoticed;
}

Outcome free_mapped(size_t) {
  free(hidden(map_page()));
  return Outcome::unnoticed;
}

Outcome write_to_empty(size_t) {
  Bytes block = make(0);
  if (block == nullptr) return Outcome::harmless;
  *block = 1;
  return Outcome::unnoticed;
}

Outcome read_from_empty(size_t) {
  Bytes block = make(0);
  if (block == nullptr) return Outcome::harmless;
  (void)*block;
  return Outcome::unnoticed;
}

Outcome write_to_empty_new(size_t) {
  *static_cast<Bytes>(hidden(::operator new(0))) = 1;
  return Outcome::unnoticed;
}

Outcome write_to_empty_calloc(size_t) {
  Bytes block = static_cast<Bytes>(hidden(calloc(0, 8)));
  if (block == nullptr) return Outcome::harmless;
  block[0] = 1;
  return Outcome::unnoticed;
}

Outcome free_empty_twice(size_t) {
  Bytes block = make(0);
  release(block);
  release(block);
  return Outcome::unnoticed;
}

struct Entry {
  const char* name;
  Crime commit;
};

constexpr size_t kSizes[] = {24, 3000, 200000};
constexpr const char* kSizeNames[] = {"small", "medium", "large"};

constexpr Entry kOfEachSize[] = {
    {"overflow_1", overflow<1>},
    {"overflow_8", overflow<8>},
    {"overflow_32", overflow<32>},
    {"overflow_mebibyte", overflow<kMebibyte>},
    {"overflow_by_a_zero", overflow_by_a_zero},
    {"underflow_1", underflow<1>},
    {"underflow_8", underflow<8>},
    {"underflow_32", underflow<32>},
    {"underflow_mebibyte", underflow<kMebibyte>},
    {"read_far_behind", read_far_behind},
    {"read_far_before", read_far_before},
    {"write_after_free_at_start", write_after_free<Where::start>},
    {"write_after_free_in_the_middle", write_after_free<Where::middle>},
    {"write_after_free_at_end", write_after_free<Where::end>},
    {"write_after_reuse", write_after_reuse},
    {"read_after_free", read_after_free},
    {"free_twice_at_once", free_twice_at_once},
    {"free_twice_later", free_twice_later},
    {"free_twice_with_another_between", free_twice_with_another_between},
    {"free_twice_after_a_write", free_twice_after_a_write},
    {"free_twice_in_two_threads", free_twice_in_two_threads},
    {"free_inside", free_inside},
    {"free_unaligned", free_unaligned},
    {"realloc_freed", realloc_freed},
    {"realloc_inside", realloc_inside},
    {"size_of_freed", size_of_freed},
    {"malloc_and_delete", malloc_and_delete},
    {"new_and_free", new_and_free},
    {"new_and_delete_array", new_and_delete_array},
    {"array_and_delete", array_and_delete},
    {"array_and_free", array_and_free},
    {"delete_as_smaller", delete_as_smaller},
    {"delete_as_larger", delete_as_larger},
    {"delete_array_as_smaller", delete_array_as_smaller},
    {"read_uninitialised", read_uninitialised},
    {"read_what_realloc_added", read_what_realloc_added},
    {"foresee_reuse", foresee_reuse},
    {"foresee_order", foresee_order},
};

// What the hardened build does not stop: that blocks of a page or more lie side by side, in whatever order; and what
// would cost a fault for each page of a large block, or the time to clear it.
constexpr const char* kOpen[] = {
    "foresee_order.medium",  "foresee_order.large",      "write_after_free_in_the_middle.large",
    "read_after_free.large", "read_uninitialised.large", "read_what_realloc_added.large"};

constexpr Entry kOfNoSize[] = {
    {"free_stack", free_stack},
    {"free_global", free_global},
    {"free_mapped", free_mapped},
    {"write_to_empty", write_to_empty},
    {"read_from_empty", read_from_empty},
    {"write_to_empty_new", write_to_empty_new},
    {"write_to_empty_calloc", write_to_empty_calloc},
    {"free_empty_twice", free_empty_twice},
};

struct Case {
  std::string name;
  Crime commit;
  size_t size;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Entry& entry : kOfEachSize)
    for (size_t index = 0; index < std::size(kSizes); ++index)
      cases.push_back({std::string(entry.name) + "." + kSizeNames[index], entry.commit, kSizes[index]});
  for (const Entry& entry : kOfNoSize) cases.push_back({entry.name, entry.commit, 0});
  return cases;
}

Outcome outcome_of(const char* program, const Case& what, bool quietly) {
  fflush(stdout);
  auto commit = [&] { return static_cast<int>(what.commit(what.size)); };
  End end = has_to_fork() ? run_forked(quietly, commit) : run_again(program, "commit", what.name, quietly);
  if (end.by_itself && (end.code == 0 || end.code == 1)) return static_cast<Outcome>(end.code);
  if (end.by_failure) return Outcome::stopped;
  fprintf(stderr, "misuse: %s ended with status 0x%x\n", what.name.c_str(), static_cast<unsigned>(end.code));
  exit(2);
}

int commit(const std::string& name) {
  for (const Case& what : all_cases())
    if (what.name == name) _exit(static_cast<int>(what.commit(what.size)));
  return 98;
}

// Uses to their last byte what it has.
int innocent() {
  for (size_t size : kSizes) {
    Row row(size);
    Bytes longer = static_cast<Bytes>(realloc(const_cast<unsigned char*>(row.blocks[0]), 3 * size));
    if (!holds_secret(longer, size)) return 1;
    fill(longer, 3 * size);
    row.blocks[0] = static_cast<Bytes>(realloc(const_cast<unsigned char*>(longer), size / 2));
    row.release_all();
    for (size_t alignment = 8; alignment <= 65536; alignment *= 2) {
      void* block = aligned_alloc(alignment, size);
      memset(block, 0xff, size_of_aligned(block, alignment));
      free_aligned(block);
      auto aligned = std::align_val_t{alignment};
      block = ::operator new(size, aligned);
      memset(block, 0xff, size);
      ::operator delete(block, size, aligned);
    }
    ::operator delete[](::operator new[](size), size);
    ::operator delete(::operator new(size), size);
    go_on(size);
  }
  for (int round = 0; round < 1000; ++round) {
    void* empty = malloc(0);
    empty = realloc(empty, 10);
    free(empty);
    ::operator delete(::operator new(0), size_t{0});
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  static constexpr const char* kWords[] = {"unnoticed", "harmless", "stopped"};
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const std::string wanted = count > 1 ? words[0] : "";
  if (wanted == "innocent") return innocent();
  if (wanted == "commit") return commit(words.at(1));
  const bool all = wanted.empty() || wanted == "all";
  const std::vector<std::string> excused(words.begin() + (count > 1 ? 1 : 0), words.end());
  auto is_open = [&](const std::string& name, const std::string& kind) {
    return std::find(std::begin(kOpen), std::end(kOpen), name) != std::end(kOpen) ||
           std::any_of(excused.begin(), excused.end(), [&](const auto& word) { return word == name || word == kind; });
  };
  unsigned caught = 0, total = 0, missed = 0;
  for (const Case& what : all_cases()) {
    const std::string kind = what.name.substr(0, what.name.find('.'));
    if (!all && kind != wanted) continue;
    Outcome outcome = outcome_of(arguments[0], what, all);
    printf("%-42s %s\n", what.name.c_str(), kWords[static_cast<int>(outcome)]);
    caught += outcome != Outcome::unnoticed;
    missed += outcome == Outcome::unnoticed && !is_open(what.name, kind);
    ++total;
  }
  if (total == 0) {
    fprintf(stderr, "misuse: there is no '%s'; without a name all are tried, and named\n", wanted.c_str());
    return 2;
  }
  if (all) printf("%u of %u stopped or harmless\n", caught, total);
  return wanted.empty() || missed == 0 ? 0 : 1;
}
