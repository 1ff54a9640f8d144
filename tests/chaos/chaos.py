#!/usr/bin/env python3
"""The chaos suite: programs that check every block they hold, disturbed by a random choice of all that programs do,
each watched (watch.py). Made-up ones (mix/) preloaded and linked, and real ones with the disturbances in a thread of
theirs. The seed that is printed repeats a run's choices; what the threads do meanwhile is the machine's affair."""

import argparse
import dataclasses
import pathlib
import random
import shutil
import sys
import tempfile
import time

import watch

MIX_SECONDS = 1
PATIENCE = 60  # no run takes a quarter of this on a busy machine

PYTHON = """
import hashlib, json, os, subprocess, sys, threading
def work(seed):
    table = {str(n * seed): [n] * (n % 50) for n in range(3000)}
    text = json.dumps(table, sort_keys=True)
    assert json.loads(text) == table
    return hashlib.sha256(text.encode()).hexdigest()
wanted = work(3)
for round in range(6):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    [t.start() for t in threads]
    child = os.fork()
    if child == 0:
        os._exit(0 if work(3) == wanted else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert subprocess.run(["/bin/echo", "x"], stdout=subprocess.PIPE).stdout == b"x\\n"
    big = bytearray(30 << 20); big[::4096] = b"x" * len(big[::4096]); big *= 2
    [t.join() for t in threads]
"""

GIT = """
set -e
cd "$1"; rm -rf r; git init -q r; cd r
for n in 1 2 3 4 5 6; do seq $((n * 3000)) > f$n; git add .; git -c user.name=n -c user.email=e@x commit -qm $n; done
git repack -adq --threads=4; git fsck --strict; git log -p | cksum; git gc -q; git clone -q . ../c; rm -rf ../c
"""

SQL = """
create table t(a integer primary key, b text, c blob);
with recursive n(i) as (select 1 union all select i+1 from n where i<40000)
  insert into t select i, printf('%d-%d', i, i*7919), zeroblob(i%300) from n;
create index i on t(b);
update t set b = b || 'x' where a%3=0; delete from t where a%5=0;
select count(*), sum(length(b)) from t; pragma integrity_check;
"""


@dataclasses.dataclass(frozen=True)
class Built:
    library: str
    mix: str
    mix_archive: str
    plugin: str
    core_plugin: str
    interposer: str
    background: str


@dataclasses.dataclass
class Run:
    words: list[str]
    preload: list[str]
    variables: dict[str, str]

    def describe(self) -> str:
        said = [f"{name}={value}" for name, value in self.variables.items()]
        shown = [pathlib.Path(library).name for library in self.preload]
        words = [word if len(word) < 200 and "\n" not in word else "…" for word in self.words]
        return " ".join([*said, *([f"LD_PRELOAD={':'.join(shown)}"] if shown else []), *words])


def real_programs(folder: str) -> list[list[str]]:
    found = {
        "python3": ["/usr/bin/python3", "-c", PYTHON],
        "git": ["/bin/sh", "-c", GIT, "sh", folder],
        "sqlite3": ["sqlite3", ":memory:", SQL],
    }
    return [words for program, words in found.items() if shutil.which(program, path="/usr/bin:/bin")]


def choose(chance: random.Random, built: Built, folder: str) -> Run:
    variables = {"REHEAP_DECAY_MS": str(chance.choice([10, 40, 40, 500]))}
    interposers = [built.interposer] if chance.random() < 0.25 else []
    seed = str(chance.randrange(1 << 32))
    programs = real_programs(folder)
    if programs and chance.random() < 0.25:
        variables["CHAOS_DISTURB"] = seed
        return Run(chance.choice(programs), [*interposers, built.background, built.library], variables)
    plugins = {"CHAOS_PLUGIN": built.plugin, "CHAOS_CORE_PLUGIN": built.core_plugin}
    words = [seed, str(MIX_SECONDS), *(["refusing"] if chance.random() < 0.2 else [])]
    if chance.random() < 0.3:
        return Run([built.mix_archive, *words], interposers, variables | plugins)
    return Run([built.mix, *words], [*interposers, built.library], variables | plugins)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800, help="how long (default: half an hour)")
    parser.add_argument("--runs", type=int, default=sys.maxsize, help="at most so many runs")
    parser.add_argument("--seed", type=int, help="the choices of an earlier run (default: the time)")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="begin with the Nth run of that seed")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    chaos, library = build / "tests/chaos", build / "lib/libreheap.so"
    built = Built(str(library), *(str(chaos / name) for name in (
        "chaos_mix", "chaos_mix_archive", "libchaos_plugin.so", "libchaos_core_plugin.so", "libchaos_interposer.so",
        "libchaos_background.so")))
    seed = int(time.time()) if arguments.seed is None else arguments.seed
    print(f"chaos: --seed {seed}", flush=True)
    end = time.monotonic() + arguments.seconds
    number = arguments.first - 1
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and number < arguments.first - 1 + arguments.runs:
            number += 1
            run = choose(random.Random(f"{seed} {number}"), built, folder)
            print(f"chaos: {number}: {run.describe()}", flush=True)
            status = watch.watch(run.words, PATIENCE, run.preload, run.variables)
            if status != 0:
                print(f"chaos: failed with status {status}; again: ./dev chaos --seed {seed} --first {number}",
                      file=sys.stderr)
                return 1
    print(f"chaos: {number - arguments.first + 1} runs, no fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
