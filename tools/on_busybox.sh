#!/usr/bin/env bash
# Whether BusyBox, linked dynamically, writes the same on its own C library's malloc and on reheap:
#
#   tools/on_busybox.sh BUSYBOX LIBRARY…
#
# A script of its shell, with its applets alone in PATH, works on the files of src/. No package has such a BusyBox for
# musl; made of Debian's source it takes CC=musl-gcc and the kernel's headers.
set -euo pipefail
[[ $# -ge 2 ]] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }

root=$(cd "$(dirname "$0")/.." && pwd)
busybox=$(realpath "$1")
mapfile -t libraries < <(realpath "${@:2}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir bin
"$busybox" --install -s bin
cp -r "$root/src" src
cat >script <<'SCRIPT'
set -e
find src -type f | sort >list
cat $(grep 'cpp$' list) >text
tr -cs 'A-Za-z_' '\n' <text | sort | uniq -c | sort -k1,1nr -k2 | head -300
awk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print n[w], w }' text | sort -k1,1nr -k2
sed -E 's/([a-z_]+)\(([a-z]+)/\2<\1/g; s/[0-9]+/#/g; /^$/d' text | md5sum
tar cf - src | gzip >packed
mkdir -p out
tar xzf packed -C out
diff -r src out/src
bzip2 -c text | bunzip2 | cmp - text
grep -rhoE '[a-z]+_[a-z]+\(' src | sort -u
for file in $(cat list); do
  set -- $(wc "$file")
  echo "$3 ${file##*/}"
done | sort -n
i=0
while [ $i -lt 3000 ]; do
  all="$all$i,"
  i=$((i + 1))
done
echo $all
echo 'scale = 200; a(1) * 4' | bc -l
SCRIPT

# write_to FILE VARIABLE…
write_to() {
  env -i "PATH=$PWD/bin" "${@:2}" bin/sh script >"$1" || { echo "the script fails, with: ${*:2}" >&2; exit 1; }
}

write_to own
for library in "${libraries[@]}"; do
  # What a library says as a process ends shows that it was there.
  served=$(env -i LD_PRELOAD="$library" REHEAP_STATS=1 bin/sort list 2>&1 >sorted)
  [[ $served == '{"version"'* ]] || { echo "$library did not serve BusyBox" >&2; exit 1; }
  strict=()
  [[ $library == *hardened* ]] && strict=(REHEAP_STRICT=1)
  write_to ours "LD_PRELOAD=$library" "${strict[@]}"
  cmp own ours
  echo "the same on $library: $(wc -l <ours) lines"
done
