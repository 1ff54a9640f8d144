#include "traffic.h"

#include <cstring>

namespace traffic {

void write(uint64_t& word) { word += 1; }
uint64_t read(const uint64_t& word) { return word; }
void write_bytes(unsigned char* bytes, unsigned long count) { memset(bytes, 1, count); }
uint64_t add(std::atomic<uint64_t>& word, uint64_t amount) { return word.fetch_add(amount); }

bool exchange_if(std::atomic<uint32_t>& word, uint32_t expected, uint32_t wanted) {
  return word.compare_exchange_strong(expected, wanted);
}

}  // namespace traffic
