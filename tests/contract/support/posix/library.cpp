#include "support/library.h"

#include <dlfcn.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace contract {

std::string real_path(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) ? resolved : "";
}

void* find_name(const char* name) { return dlsym(RTLD_DEFAULT, name); }

std::string expected_server() {
  if (mode() == Mode::archive) return real_path("/proc/self/exe");
  if (mode() != Mode::system) {
    const char* library = std::getenv("CONTRACT_LIBRARY");
    return library ? real_path(library) : "CONTRACT_LIBRARY is not set";
  }
  return server_of(reinterpret_cast<const void*>(find<int(const char*)>("puts")));
}

std::string server_of(const void* function) {
  Dl_info info{};
  if (!function || !dladdr(function, &info) || !info.dli_fname) return "";
  // The name of the main program may be relative to a directory it has since left.
  const bool is_program = info.dli_fbase != nullptr && std::strchr(info.dli_fname, '/') == nullptr;
  const std::string path = real_path(info.dli_fname);
  return path.empty() || is_program ? real_path("/proc/self/exe") : path;
}

}  // namespace contract
