#!/usr/bin/env bash
# What `./dev build linux-x86_64` made, in another release of Debian: on its C library, under its programs. The release
# is put into build/roots once, which takes some minutes; that needs root and debootstrap.
#
#   tools/on_debian.sh bullseye        Debian 11, glibc 2.31
#   tools/on_debian.sh trixie          Debian 13, glibc 2.41
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
suite=${1:-}
root=build/roots/$suite
built=build/linux-x86_64

complain() {
  echo "on_debian.sh: $*" >&2
  exit 2
}
[[ $suite ]] || complain "which release? Say bullseye, or trixie"
[[ $(id -u) == 0 ]] || complain "entering another root needs root: sudo $0 $suite"
[[ -e $built/lib/libreheap.so && -e $built/bin/reheap ]] || complain "nothing is built: ./dev build linux-x86_64"
command -v debootstrap >/dev/null || complain "debootstrap is not installed: apt-get install debootstrap"

# Where this machine's own packages come from.
mirror() {
  local address
  address=$(apt-get download --print-uris libc6 | cut -d"'" -f2)
  [[ $address ]] || complain "apt-get knows no address of libc6: apt-get update"
  echo "${address%/pool/*}"
}

if [[ ! -e $root/made ]]; then
  rm -rf "$root"
  debootstrap --variant=minbase --include=python3,perl,sqlite3 "$suite" "$root" "$(mirror)" >"$root.log" || {
    complain "debootstrap failed; its last lines: $(tail -n 3 "$root.log")"
  }
  touch "$root/made"
fi

rm -rf "$root/reheap"
mkdir "$root/reheap"
cp -a $built/lib $built/bin "$root/reheap"
zig=$(tools/fetch_windows.py zig)/zig
"$zig" cc --target=x86_64-linux-gnu.2.17 -O1 -fno-builtin -fno-sanitize=undefined -Iinclude \
  -o "$root/reheap/program" tests/musl/program.c -lpthread
cat >"$root/reheap/program.py" <<'END'
import json, os, subprocess, threading

def work():
    for _ in range(200):
        json.loads(json.dumps({str(key): [key] * key for key in range(60)}))

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
child = os.fork()
if child == 0:
    work()
    os._exit(0)
for thread in threads:
    thread.join()
print(os.waitpid(child, 0)[1], subprocess.run(["perl", "-e", "print 6 * 7"], capture_output=True).stdout)
END
cat >"$root/reheap/program.pl" <<'END'
use threads;
my @threads = map { threads->create(sub { my %h; $h{$_} = "x" x ($_ % 300) for 1 .. 20000; scalar keys %h }) } 1 .. 4;
print join(",", map { $_->join } @threads), "\n";
END
cat >"$root/reheap/program.sql" <<'END'
create table t(a, b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 100000)
  insert into t select x, hex(zeroblob(x % 100)) from c;
select count(*), sum(length(b)) from t;
END

mount --bind /proc "$root/proc"
trap 'umount "$root/proc"' EXIT
inside() { chroot "$root" /usr/bin/env -C /reheap "$@"; }

inside ldd --version | head -n 1
inside bin/reheap doctor -- python3 | grep -E '^(library|reached)'
failed=0
for library in libreheap libreheap-hardened; do
  for command in "./program reheap" "python3 -W ignore program.py" "perl program.pl" \
    "sqlite3 -init program.sql :memory: .quit"; do
    expected=$(inside ${command% reheap} 2>&1)
    seen=$(inside env LD_PRELOAD="/reheap/lib/$library.so" $command 2>&1) || true
    if [[ $seen == "$expected" ]]; then
      echo "ok      $library: $command"
    else
      echo "FAILED  $library: $command"
      diff <(echo "$expected") <(echo "$seen") || failed=1
    fi
  done
done
exit $failed
