#!/usr/bin/env bash
# The manual's pages, made of the command's own help: pages.sh COMMAND FOLDER
set -euo pipefail
[[ $# == 2 && -x $1 ]] || { echo "usage: pages.sh COMMAND FOLDER" >&2; exit 2; }
command -v help2man >/dev/null || { echo "pages.sh: needs help2man (apt-get install help2man)" >&2; exit 1; }

version=$("$1" --version | cut -d" " -f2)
mkdir -p "$2"
# By this name alone, which the pages repeat.
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
ln -s "$(realpath "$1")" "$bin/reheap"
folder=$2
page() { # NAME SENTENCE COMMAND…
  PATH=$bin:$PATH help2man --no-info --version-string="$1 $version" --name="$2" "${*:3}" --output="$folder/$1.1"
}
page reheap "puts the reheap memory allocator under programs as they are" reheap
page reheap-run "run a program, and those it starts, on the reheap memory allocator" "reheap run"
page reheap-doctor "prove which library serves malloc" "reheap doctor"
