#!/usr/bin/env bash
# find_package(reheap) from an installed tree, in C and C++, against each of the libraries.
source "$(dirname "$0")/../install.sh"

cmake=${CMAKE:-cmake}
for language in C CXX; do
  build=$work/build-$language
  "$cmake" -S "$sources/cmake/consumer" -B "$build" -G Ninja -DLANGUAGE=$language \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
  "$cmake" --build "$build"
  "$(dirname "$cmake")/ctest" --test-dir "$build" --output-on-failure --no-tests=error
done

# As a folder of another project's.
"$cmake" -S "$sources/cmake/parent" -B "$work/parent" -G Ninja -DREHEAP="$sources/.." >"$work/parent.log"
