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

# As a folder of another project's, with a space on the way there and in what is made.
ln -s "$sources/.." "$work/its sources"
parent="$work/a parent"
"$cmake" -S "$work/its sources/integrations/cmake/parent" -B "$parent" -G Ninja \
  -DREHEAP="$work/its sources" >"$work/parent.log"
"$cmake" --build "$parent" >>"$work/parent.log" || { tail -40 "$work/parent.log" >&2; exit 1; }
"$parent/with_reheap" serves
"$parent/with_static" serves
"$parent/with_core" beside
# Its programs are tested and installed as it says; reheap's part in that is nothing.
"$cmake" --install "$parent" --prefix "$work/of parent" >>"$work/parent.log"
[[ ! -e "$work/of parent" ]] || { echo "installed with its parent:" >&2; find "$work/of parent" >&2; exit 1; }
[[ $("$(dirname "$cmake")/ctest" --test-dir "$parent" --show-only 2>&1) == *"Total Tests: 0"* ]] ||
  { echo "tested with its parent" >&2; exit 1; }
