// What programs compiled with allocation tokens call (clang -fsanitize=alloc-token), as that compiler calls it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "reheap/reheap.h"
#include "requests.h"
#include "support/library.h"
#include "support/pattern.h"
#include "support/process.h"
#include "support/scenario.h"

using namespace contract;

namespace {

using std::size_t;

// The names that take the token last.
template <class... Parameters> auto of_token(const char* name) {
  return find<void*(Parameters..., size_t)>((std::string("__alloc_token_") + name).c_str());
}

// The same with the token in the name.
template <class... Parameters> auto named(size_t token, const char* name) {
  return find<void*(Parameters...)>(("__alloc_token_" + std::to_string(token) + "_" + name).c_str());
}

const std::string kNew = std::string("_Znw") + (sizeof(size_t) == 8 ? "m" : "j");
const std::string kNewArray = std::string("_Zna") + (sizeof(size_t) == 8 ? "m" : "j");
constexpr const char* kNames[] = {"malloc",         "calloc",   "realloc", "reallocarray", "aligned_alloc",
                                  "posix_memalign", "memalign", "valloc",  "pvalloc"};
constexpr const char* kOperators[] = {"", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t"};

TEST(Tokens, AllNamesAreThere) {
  std::vector<std::string> names(std::begin(kNames), std::end(kNames));
  for (const char* suffix : kOperators) names.insert(names.end(), {kNew + suffix, kNewArray + suffix});
  for (const std::string& name : names) {
    EXPECT_NE(of_token<>(name.c_str()), nullptr) << name;
    for (size_t token = 0; token < 8; ++token) EXPECT_NE(named<>(token, name.c_str()), nullptr) << name << token;
  }
}

// Of each kind of call, with `token`.
std::vector<void*> one_of_each(size_t token) {
  using std::align_val_t, std::nothrow_t;
  constexpr size_t kSize = 100;
  void* aligned = nullptr;
  auto memalign_to = find<int(void**, size_t, size_t, size_t)>("__alloc_token_posix_memalign");
  EXPECT_EQ(memalign_to(&aligned, 64, kSize, token), 0);
  void* resized = of_token<void*, size_t>("realloc")(malloc(10), kSize, token);
  return {of_token<size_t>("malloc")(kSize, token),
          of_token<size_t, size_t>("calloc")(10, kSize / 10, token),
          of_token<void*, size_t>("realloc")(nullptr, kSize, token),
          of_token<void*, size_t, size_t>("reallocarray")(resized, 10, kSize / 10, token),
          of_token<size_t, size_t>("aligned_alloc")(64, kSize, token),
          aligned,
          of_token<size_t, size_t>("memalign")(60, kSize, token),
          of_token<size_t>("valloc")(kSize, token),
          of_token<size_t>("pvalloc")(kSize, token)};
}

std::vector<void*> one_of_each_new(size_t token) {
  using std::align_val_t;
  using Quiet = const std::nothrow_t&;
  std::vector<void*> blocks;
  for (const std::string& name : {kNew, kNewArray}) {
    blocks.push_back(of_token<size_t>(name.c_str())(100, token));
    blocks.push_back(of_token<size_t, Quiet>((name + kOperators[1]).c_str())(100, std::nothrow, token));
    blocks.push_back(of_token<size_t, align_val_t>((name + kOperators[2]).c_str())(100, align_val_t{64}, token));
    blocks.push_back(of_token<size_t, align_val_t, Quiet>((name + kOperators[3]).c_str())(100, align_val_t{64},
                                                                                          std::nothrow, token));
  }
  return blocks;
}

std::uintptr_t unit_of(const void* block) { return reinterpret_cast<std::uintptr_t>(block) >> 14; }

void release(const std::vector<void*>& c, const std::vector<void*>& cxx) {
  for (void* block : c) free(block);
  // Not as one expression: of `half ? operator delete(block) : operator delete[](block)` Clang 19 and 21 call both.
  for (size_t at = 0; at < cxx.size() / 2; ++at) operator delete(cxx[at]);
  for (size_t at = cxx.size() / 2; at < cxx.size(); ++at) operator delete[](cxx[at]);
}

// Whatever the call, one token's blocks are together and another's are not: in the hardened build.
void expect_apart(const std::vector<size_t>& tokens) {
  std::map<std::uintptr_t, size_t> token_of;
  std::vector<void*> plain;
  for (int count = 0; count < 1000; ++count) plain.push_back(malloc(100));
  for (const void* block : plain) token_of[unit_of(block)] = SIZE_MAX;
  for (int count = 0; count < 100; ++count)
    for (size_t token : tokens) {
      const std::vector<void*> c = one_of_each(token), cxx = one_of_each_new(token);
      for (const auto& blocks : {c, cxx})
        for (void* block : blocks) {
          ASSERT_NE(block, nullptr);
          std::memset(block, 1, 100);
          if (is_hardened()) ASSERT_EQ(token_of.try_emplace(unit_of(block), token).first->second, token);
        }
      release(c, cxx);
    }
  for (void* block : plain) free(block);
}

TEST(Tokens, BlocksOfEachOfAFewAreApart) { expect_apart({0, 1, 7, 8, 15}); }

// As the compiler makes them where it may use all numbers.
TEST(Tokens, BlocksWithPointersAreApartFromThoseWithoutAndOfNoType) {
  expect_apart({0, SIZE_MAX / 3, SIZE_MAX / 3 * 2});
}

TEST(Tokens, OneInTheNameIsTheSame) {
  for (size_t token = 0; token < 8; ++token) {
    std::vector<void*> blocks;
    for (int count = 0; count < 100; ++count) {
      blocks.push_back(count % 2 == 0 ? named<size_t>(token, "malloc")(40) : of_token<size_t>("malloc")(40, token));
      if (is_hardened()) EXPECT_EQ(unit_of(blocks.back()), unit_of(blocks.front())) << token;
    }
    for (void* block : blocks) free(block);
  }
}

TEST(Tokens, TheRulesAreTheNames) {
  for (const size_t size : impossible) {
    errno = 0;
    EXPECT_EQ(of_token<size_t>("malloc")(opaque(size), 3), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_THROW(of_token<size_t>(kNew.c_str())(opaque(size), 3), std::bad_alloc);
  }
  errno = 0;
  EXPECT_EQ((of_token<size_t, size_t>("aligned_alloc")(opaque(24), 100, 3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ((of_token<size_t, size_t>("calloc")(opaque(SIZE_MAX / 2), 4, 3)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* block = of_token<size_t>("malloc")(100, 3);
  EXPECT_EQ((of_token<void*, size_t, size_t>("reallocarray")(block, opaque(SIZE_MAX / 2), 4, 3)), nullptr);
  EXPECT_EQ((of_token<void*, size_t>("realloc")(block, 0, 3)), nullptr);
}

// ---- threads that pass their blocks to each other, and forks --------------------------------------

constexpr size_t kTokens = 16;

struct Typed {
  void* block = nullptr;
  size_t size = 0, token = 0;
};

class Exchange {
 public:
  // As a block that was just allocated: where no other token's ever lay.
  void enter(const Typed& typed) {
    fill(typed.block, typed.size, typed.token);
    if (!is_hardened()) return;
    const auto start = reinterpret_cast<std::uintptr_t>(typed.block);
    const std::lock_guard guard(mutex_);
    for (std::uintptr_t unit = start >> 14; unit <= (start + typed.size - 1) >> 14; ++unit)
      NEED(token_of_.try_emplace(unit, typed.token).first->second == typed.token, "%zu", typed.token);
  }

  Typed swap(Random& random, const Typed& typed) {
    const std::lock_guard guard(mutex_);
    std::swap(places_[random.below(places_.size())], const_cast<Typed&>(typed));
    return typed;
  }

  std::array<Typed, 300>& places() { return places_; }

 private:
  std::mutex mutex_;
  std::array<Typed, 300> places_;
  std::map<std::uintptr_t, size_t> token_of_;
};

void drop(const Typed& typed) {
  NEED(typed.block == nullptr || intact(typed.block, typed.size, typed.token), "token %zu", typed.token);
  free(typed.block);
}

void step(Exchange& exchange, Random& random) {
  Typed typed;
  typed.size = random.size(200 * KiB) + 1;
  typed.token = random.below(kTokens);
  typed.block = random.below(2) == 0 ? of_token<size_t>("malloc")(typed.size, typed.token)
                                     : of_token<size_t>(kNew.c_str())(typed.size, typed.token);
  NEED(typed.block);
  exchange.enter(typed);
  Typed other = exchange.swap(random, typed);
  if (other.block != nullptr && random.below(4) == 0) {
    NEED(intact(other.block, other.size, other.token));
    other.size = random.size(200 * KiB) + 1;
    if (random.below(2) == 0) other.token = random.below(kTokens);
    other.block = of_token<void*, size_t>("realloc")(other.block, other.size, other.token);
    NEED(other.block);
    exchange.enter(other);
  }
  drop(other);
}

void run_some_threads(Exchange& exchange, std::uint64_t seed) {
  std::vector<std::thread> threads;
  for (std::uint64_t at = 0; at < 4; ++at)
    threads.emplace_back([&exchange, seed, at] {
      Random random(seed + at);
      for (int round = 0; round < rounds(3000); ++round) step(exchange, random);
      if (at == 0) CONTRACT_FIND(rh_trim)();
    });
  for (std::thread& thread : threads) thread.join();
}

SCENARIO(tokens_in_threads) {
  Exchange exchange;
  for (std::uint64_t round = 0; round < 8; ++round) {
    run_some_threads(exchange, 100 * round);
    if (round != 3) continue;
    const pid_t child = fork();
    NEED(child != -1);
    if (child == 0) {
      for (std::uint64_t more = 0; more < 2; ++more) run_some_threads(exchange, 1000 + more);
      _exit(0);
    }
    int status = 0;
    NEED(waitpid(child, &status, 0) == child && status == 0, "%d", status);
  }
  for (const Typed& typed : exchange.places()) drop(typed);
  return 0;
}

TEST(Tokens, InThreadsAndForks) { EXPECT_SCENARIO("tokens_in_threads", {.deadline = 60}); }

}  // namespace
