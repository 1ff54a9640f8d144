#!/usr/bin/env bash
# The suites for Windows, on Windows itself: to be run in MSYS2's UCRT64 shell. The packages it needs:
#   pacman -S --needed mingw-w64-ucrt-x86_64-{gcc,cmake,ninja,gtest,cli11,nlohmann-json,python,rust}
# Here it has not been run: the machines this project was written on have Wine only.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ ${MSYSTEM:-} == UCRT64 ]] || {
  echo "on_windows.sh: not in MSYS2's UCRT64 shell; open that one (or set MSYSTEM=UCRT64) and run this again" >&2
  exit 2
}

build=build/windows
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DREHEAP_TESTS=ON
cmake --build "$build"
# Real programs need downloads that only tools/fetch_windows.py makes; the runner under Wine has nothing to show here.
ctest --test-dir "$build" --output-on-failure --timeout 600 --label-exclude '^(programs|wine|integrations)$' "$@"
