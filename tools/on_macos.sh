#!/usr/bin/env bash
# The first thing to do on a Mac, with Xcode's command line tools and CMake: builds the libraries there, and has a
# program of its own served by them in each of the three ways, and others that are installed. Here it has not been run:
# the machines this project was written on have no macOS, and what they build for it nothing has run yet.
#
#   tools/on_macos.sh              what Xcode's compiler makes of the sources
#   tools/on_macos.sh FOLDER       libreheap.dylib and libreheap.a in a folder, made elsewhere (build/macos-arm64/lib)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $(uname -s) == Darwin ]] || {
  echo "on_macos.sh: this is $(uname -s), not macOS; here ./dev build macos-arm64 makes the libraries" >&2
  exit 2
}

libraries=${1:-}
if [[ ! $libraries ]]; then
  cmake -S . -B build/macos -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_UNITY_BUILD=ON
  cmake --build build/macos --target products --parallel
  libraries=build/macos/lib
fi
libraries=$(cd "$libraries" && pwd)
made=build/on_macos
mkdir -p $made
cc=(cc -O1 -fno-builtin tests/macos/program.c)
"${cc[@]}" -o $made/plain
"${cc[@]}" -o $made/linked "$libraries/libreheap.dylib" -Wl,-rpath,"$libraries"
"${cc[@]}" -o $made/static "$libraries/libreheap.a" -Wl,-u,_rh_malloc

failed=0
# try WHAT COMMAND…
try() {
  local what=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok      $what"
  else
    echo "FAILED  $what ($?): $*"
    failed=1
  fi
  sed 's/^/        /' <<<"$output" | tail -n 6
}

insert=(env DYLD_INSERT_LIBRARIES="$libraries/libreheap.dylib")
try "the system's malloc" $made/plain system
try "inserted" "${insert[@]}" $made/plain reheap
try "linked with the library" $made/linked reheap
try "linked with the archive" $made/static reheap
try "without the nano zone" "${insert[@]}" MallocNanoZone=0 $made/plain reheap
try "an account of itself" "${insert[@]}" REHEAP_VERBOSE=1 $made/plain reheap
try "guarded allocations" "${insert[@]}" REHEAP_SAMPLE_GUARD=100 $made/plain reheap

# The system's own programs drop DYLD_INSERT_LIBRARIES; those of Homebrew and MacPorts do not.
for command in "python3 -c print(sum(len(str(i)*9)for(i)in(range(300000))))" "node -e console.log(1)" \
  "sqlite3 :memory: .quit"; do
  program=$(command -v "${command%% *}") || continue
  [[ $program == /usr/bin/* || $program == /bin/* ]] && continue
  # shellcheck disable=SC2086
  try "$program" "${insert[@]}" $command
done
exit $failed
