// A file read and written at offsets. (MinGW's std::fstream cannot seek with the UCRT.)
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace trace {

class ByteFile {
 public:
  ByteFile(const std::string& path, const char* mode) : file_(std::fopen(path.c_str(), mode)) {}
  ~ByteFile() {
    if (file_) std::fclose(file_);
  }
  ByteFile(const ByteFile&) = delete;
  ByteFile& operator=(const ByteFile&) = delete;

  explicit operator bool() const { return file_ != nullptr; }

  uint64_t size() {
    if (!seek(0, SEEK_END)) return 0;
    return static_cast<uint64_t>(ftello(file_));
  }

  // Returns how many bytes there were.
  size_t read(uint64_t offset, void* to, size_t bytes) {
    return seek(offset, SEEK_SET) ? std::fread(to, 1, bytes, file_) : 0;
  }

  bool write(uint64_t offset, const void* from, size_t bytes) {
    return seek(offset, SEEK_SET) && std::fwrite(from, 1, bytes, file_) == bytes;
  }

  // True when all was written.
  bool close() {
    std::FILE* file = std::exchange(file_, nullptr);
    const bool good = std::ferror(file) == 0;
    return (std::fclose(file) == 0) && good;
  }

 private:
  bool seek(uint64_t offset, int whence) { return fseeko(file_, static_cast<off_t>(offset), whence) == 0; }

  std::FILE* file_;
};

}  // namespace trace
