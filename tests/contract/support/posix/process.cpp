#include "support/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace contract {
namespace {

std::size_t read_file(const char* path, char* buffer, std::size_t capacity) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, buffer, capacity - 1);
  close(file);
  const std::size_t length = got > 0 ? static_cast<std::size_t>(got) : 0;
  buffer[length] = 0;
  return length;
}

std::size_t status_number(const char* key) {
  char text[4096];
  read_file("/proc/self/status", text, sizeof text);
  const char* line = std::strstr(text, key);
  return line ? std::strtoull(line + std::strlen(key), nullptr, 10) : 0;
}

}  // namespace

// statm and VmRSS are counted lazily per CPU by newer kernels and may lag by some hundred KiB;
// tests leave room for that.
std::size_t resident() { return status_number("VmRSS:") * KiB; }
std::size_t peak_resident() { return status_number("VmHWM:") * KiB; }
std::uint64_t process_id() { return static_cast<std::uint64_t>(getpid()); }

// Without the one that QEMU has for itself.
int threads() { return static_cast<int>(status_number("Threads:")) - (emulator() ? 1 : 0); }

const char* emulator() { return std::getenv("CONTRACT_EMULATOR"); }

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void nap(double duration) {
  timespec left{};
  left.tv_sec = static_cast<time_t>(duration);
  left.tv_nsec = static_cast<long>((duration - static_cast<double>(left.tv_sec)) * 1e9);
  while (nanosleep(&left, &left) != 0) {}
}

}  // namespace contract
