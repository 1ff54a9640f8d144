// Accesses as an allocator's code makes them: traffic.cpp is compiled with -fsanitize=thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace traffic {

void write(uint64_t& word);
uint64_t read(const uint64_t& word);
void write_bytes(unsigned char* bytes, unsigned long count);
uint64_t add(std::atomic<uint64_t>& word, uint64_t amount);
bool exchange_if(std::atomic<uint32_t>& word, uint32_t expected, uint32_t wanted);

}  // namespace traffic
