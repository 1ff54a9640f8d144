#!/usr/bin/env bash
# The pkg-config files of an installed tree, in C and C++.
source "$(dirname "$0")/../install.sh"

libraries=("$prefix"/lib*/ "$prefix"/lib/*/)
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(printf '%spkgconfig:' "${libraries[@]}")
LD_LIBRARY_PATH=$(printf '%s:' "${libraries[@]}")

try() {
  local package=$1 how=$2 language program
  for language in c cpp; do
    program=$work/$language-$package
    local compiler=${CC:-cc}
    [[ $language == c ]] || compiler="${CXX:-c++} -std=c++17"
    # Compilers and pkg-config speak in words as a shell reads them.
    eval "$compiler -O2 -pthread \"\$sources/consumer/consumer.$language\" -o \"\$program\"" \
      "$(pkg-config --cflags --libs "$package")"
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH "$program" "$how"
  done
  if [[ $how == serves ]]; then
    eval "${CC:-cc} -Wl,--as-needed \"\$sources/consumer/silent.c\" -o \"\$work/silent-$package\"" \
      "$(pkg-config --libs "$package")"
    # Not through a pipe: grep -q closes it at the first match, which ends a program that writes more.
    [[ $(LD_LIBRARY_PATH=$LD_LIBRARY_PATH REHEAP_VERBOSE=1 "$work/silent-$package" 2>&1) == *reheap* ]] ||
      { echo "$package: a program that names no symbol of it is linked without it" >&2; exit 1; }
  fi
  echo "$package: C and C++ programs built and run, $how"
}

[[ $(pkg-config --modversion reheap) == $("$prefix/bin/reheap" --version | grep -o '[0-9.]*[0-9]' | head -1) ]]
try reheap serves
try reheap-static serves
try reheap-hardened serves
try reheap-core beside
