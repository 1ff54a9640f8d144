/* C++ containers built up and torn down: maps of strings, many small nodes, in the order programs make
 * them. Everything goes through operator new and delete. */
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "workload.h"

namespace {

constexpr int kTotalRounds = 72;
constexpr int kKeys = 20000;
int threads;

std::string text_of(Random& random) {
  return std::string(4 + below(&random, 60), static_cast<char>('a' + below(&random, 26)));
}

std::size_t one_round(Random& random) {
  std::map<std::size_t, std::string> ordered;
  std::unordered_map<std::string, std::vector<int>> index;
  std::vector<std::unique_ptr<int>> owned;
  for (int i = 0; i < kKeys; i++) {
    std::size_t key = below(&random, kKeys);
    ordered[key] = text_of(random);
    index[ordered[key]].push_back(i);
    if (i % 3 == 0)
      owned.push_back(std::make_unique<int>(i));
    else if (i % 5 == 0)
      ordered.erase(below(&random, kKeys));
  }
  return ordered.size() + index.size() + owned.size();
}

void* work(void* argument) {
  Random random = random_for(static_cast<unsigned>(reinterpret_cast<std::intptr_t>(argument)));
  std::size_t seen = 0;
  for (int i = 0; i < kTotalRounds / threads; i++) seen += one_round(random);
  return reinterpret_cast<void*>(seen);
}

}  // namespace

int main(int argc, char** argv) {
  threads = thread_count(argc, argv);
  run_threads(threads, work);
}
