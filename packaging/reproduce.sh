#!/usr/bin/env bash
# Proves that a release can be made again: compiles the libraries and the command in two folders of different names, and
# compares. reproduce.sh [FOLDER] leaves both there (build/reproduce). Takes minutes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(realpath -m "${1:-$root/build/reproduce}")
cd "$root"
rm -rf "$work/one" "$work/a second one"
for folder in one "a second one"; do
  mkdir -p "$work/$folder"
  git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --no-dereference -t "$work/$folder"
  cd "$work/$folder"
  cmake --preset release -DREHEAP_TESTS=OFF >cmake.log
  cmake --build build/release --parallel "${REHEAP_JOBS:-$(nproc)}" \
    --target reheap reheap_hardened reheap_static reheap_static_hardened reheap_core reheap_command >build.log
  cd "$root"
done

differ=0
for file in lib/libreheap{,-hardened}.so lib/libreheap{,-core,-hardened}.a bin/reheap; do
  if cmp "$work/one/build/release/$file" "$work/a second one/build/release/$file"; then
    echo "the same: $file"
  else
    differ=1
  fi
done
exit $differ
