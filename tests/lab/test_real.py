"""The lab with its real native parts, on commands that take no time: what is proven, counted and told."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from reheap_lab import allocators, cli, compare, elf, native, results
from reheap_lab.errors import UsageError
from reheap_lab.settings import Server, Settings

REHEAP = native.find_library("libreheap.so")
pytestmark = pytest.mark.skipif(not (native.folder() / "bin" / "reheap-runner").is_file() or REHEAP is None,
                                reason="the native parts are not here (test_package.py fails then)")


def run(command: list[str], wanted: str = "system,reheap", **settings):
    chosen = allocators.choose(wanted, compare.command_kind(command), [])
    return compare.compare(command, chosen, Settings(**({"runs": 2, "warmups": 1, "extras": False} | settings)))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Compiles C text into a library or a program."""
    folder, compiler = tmp_path_factory.mktemp("built"), shutil.which("cc") or shutil.which("gcc")

    def build(name: str, text: str, *flags: str) -> pathlib.Path:
        source = folder / f"{name}.c"
        source.write_text(text)
        subprocess.run([compiler, "-o", folder / name, source, *flags], check=True, capture_output=True)
        return folder / name
    return build


def test_who_served_it_is_proven_in_each_run():
    made = run(["sh", "-c", "echo hello"])
    system, reheap = made.subjects
    assert pathlib.Path(reheap.proof["malloc"]).resolve() == REHEAP.resolve()
    assert "libc" in system.proof["malloc"] and set(reheap.proof) >= {"malloc", "free", "calloc", "realloc"}
    assert [run.failed for run in made.runs] == [None] * 6 and not reheap.warnings
    figures = made.measured("reheap")[0].figures
    assert figures["wall_s"] > 0 and figures["peak_rss_kib"] > 100


def test_the_further_runs_count_and_profile():
    busy = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    made = run(["sh", "-c", busy], "system", runs=1, warmups=0, extras=True)
    extras = made.extras["system"]
    assert extras.calls["mmap"] > 0 and extras.calls["brk"] > 0
    assert extras.profile is None or sum(extras.profile.shares.values()) == pytest.approx(1)
    assert not any("no profile or no count" in warning for warning in made.subjects[0].warnings)


@pytest.mark.parametrize("script, settings, said", [
    ("echo broken >&2; exit 3", {}, "exit status was 3; it said: broken"),
    ("kill -SEGV $$", {}, "signal 11 (SIGSEGV)"),
    ("sleep 20", {"timeout": 0.3}, "longer than 0.3 s"),
])
def test_failures_under_one_allocator(script, settings, said):
    made = run(["sh", "-c", f'case "$LD_PRELOAD" in *libreheap.so*) {script};; esac'], **settings)
    assert said in made.subjects[1].failed and made.subjects[0].failed is None


def test_other_output_under_one_allocator():
    made = run(["sh", "-c", 'case "$LD_PRELOAD" in *libreheap.so*) echo other;; esac'], output="check")
    assert "prints something else than under system" in made.subjects[1].failed


def test_a_library_that_does_not_serve_malloc(built):
    library = built("libnothing.so", "int nothing(void) { return 0; }", "-shared", "-fPIC")
    with pytest.raises(UsageError, match="x: .*libnothing.so does not serve a program's malloc"):
        run(["true"], f"system,x={library}")


def test_a_library_whose_own_libraries_are_missing(built):
    needed = built("libneeded.so", "int needed(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libnowhere.so")
    text = "int needed(void); void* malloc(unsigned long n) { return (void*)(n + needed()); }"
    library = built("libneedy.so", text, "-shared", "-fPIC", "-fno-builtin", "-Wl,--no-as-needed", str(needed))
    with pytest.raises(UsageError, match="libneedy.so does not serve .* The loader said: .*libnowhere.so"):
        run(["true"], f"system,x={library}")


def test_a_library_that_serves_but_half(built):
    text = "#define _GNU_SOURCE\n#include <dlfcn.h>\nextern void* __libc_calloc(unsigned long, unsigned long);\n" \
           "void* calloc(unsigned long a, unsigned long b) { return __libc_calloc(a, b); }"
    library = built("libhalf.so", text, "-shared", "-fPIC", "-fno-builtin")
    with pytest.raises(UsageError, match="its malloc was served by"):
        run(["true"], f"x={library}")


def test_a_program_that_cannot_be_reached(built):
    program = built("still", "int main(void) { return 0; }", "-static")
    with pytest.raises(compare.LabError, match="statically linked"):
        run([str(program)])


def test_what_a_library_brings_along_is_part_of_the_allocator(built):
    inner = built("libinner.so", "void inner(void) {}", "-shared", "-fPIC")
    outer = built("libouter.so", "void inner(void); void outer(void) { inner(); }", "-shared", "-fPIC", str(inner))
    allocator = allocators.Allocator("x", (outer,))
    assert list(map(pathlib.Path, allocator.parts())) == [outer, inner]
    assert allocators.Allocator("y", (built("libodd.txt", "int x;", "-c"),)).parts()[1:] == []


BURN = "int main(void) { for (volatile long i = 0; i < 50000000; i++); return 0; }"


STATIC, WITHOUT = "it is statically linked", "it was started without LD_PRELOAD"


@pytest.mark.parametrize("script, why", [
    ("{still}; true", STATIC), ("exec {still}", STATIC), ("env -u LD_PRELOAD {moving}", WITHOUT),
    ("env -i {moving}", WITHOUT), ("unset LD_PRELOAD; {moving}; true", WITHOUT), ("{loader} {moving}", None)])
def test_a_program_that_a_script_puts_out_of_reach(built, script, why):
    still, moving = built("burns_still", BURN, "-static"), built("burns", BURN)
    words = ["sh", "-c", script.format(still=still, moving=moving, loader=elf.loader(moving))]
    if why is None:
        assert [subject.failed for subject in run(words, runs=1).subjects] == [None, None]
        return
    with pytest.raises(compare.LabError, match=rf"burns\S* \(\d+ % of the CPU time\): {why}"):
        run(words)


def test_what_a_programs_file_tells(built, monkeypatch):
    moving = built("moving", BURN)
    assert elf.out_of_reach(moving).startswith(WITHOUT)
    moving.chmod(0o4755)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "runs with other rights" in elf.out_of_reach(moving)
    other = built("other", BURN, "-Wl,--dynamic-linker=/lib/ld-other.so")
    assert elf.out_of_reach(other) == "it has another loader (/lib/ld-other.so)"
    assert elf.out_of_reach(pathlib.Path("/nowhere")) is None and elf.out_of_reach(pathlib.Path(__file__)) is None
    short = moving.with_name("short")
    short.write_bytes(moving.read_bytes()[:40])
    assert elf.out_of_reach(short) is None


def anyone_may_read(path: pathlib.Path) -> bool:
    return all(folder.stat().st_mode & 0o1 for folder in path.resolve().parents)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv") or not anyone_may_read(native.folder() / "lib"),
                    reason="only root may become another user, who must be able to read the witness")
def test_a_program_that_another_user_runs_is_proven(built):
    with tempfile.TemporaryDirectory() as folder:  # pytest's are root's alone
        os.chmod(folder, 0o755)
        moving = shutil.copy(built("moving", BURN), folder)
        made = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", moving], "system", runs=1)
    assert made.subjects[0].failed is None and made.subjects[0].share == pytest.approx(1)


HOLD = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char** words) {
  (void)count;
  %s
  for (int i = 0; i < 50000; i++) { char* volatile block = malloc(99); memset(block, 1, 99); }
  return 0;
}
"""


@pytest.mark.parametrize("first", [
    "for (int i = 0; i < 4096; i++) close(i);",
    'prctl(PR_SET_NAME, "x) R 1 (y"); memset(words[0], 32, strlen(words[0]));',
    "if (getuid() == 0 && (setgid(65534) || setuid(65534))) return 5;",
    "setpgid(0, 0); signal(SIGTERM, SIG_IGN); kill(0, SIGTERM);",
    "if (fork() == 0) { setsid(); _exit(0); } sleep(0);"], ids=["closes", "renames", "setuid", "group", "session"])
def test_what_a_program_does_to_itself_does_not_hide_it(built, first):
    made = run([str(built("does", HOLD % first))], runs=1)
    assert [subject.failed for subject in made.subjects] == [None, None]
    assert all(subject.share == pytest.approx(1) for subject in made.subjects)
    assert not any("served" in warning or "accounted" in warning for s in made.subjects for warning in s.warnings)


def test_a_program_that_kills_its_process_group_is_a_failure_and_no_more(built):
    killer = built("killer", HOLD % "(void)words; kill(0, SIGKILL);")
    with pytest.raises(compare.LabError, match="ended by signal 9"):
        run(["sh", "-c", f"{killer}; true"])


def test_a_program_that_is_reached_once_only(built, tmp_path):
    still, moving, seen = built("burns_still", BURN, "-static"), built("burns", BURN), tmp_path / "seen"
    script = f"[ -e {seen} ] && exec {still}; touch {seen}; exec {moving}"
    made = run(["sh", "-c", script], "system", extras=True)
    assert any("is not what was proven before them: burns_still" in text for text in made.subjects[0].warnings)


def test_a_program_that_will_not_be_followed(built):
    text = "#include <sys/ptrace.h>\nint main(void) { return ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? 0 : 3; }"
    made = run([str(built("shy", text))])
    assert [subject.failed for subject in made.subjects] == [None, None]
    assert all("could not be accounted for" in subject.warnings[0] for subject in made.subjects)


def test_what_outlives_its_run_is_in_no_other(tmp_path):
    late = "(while [ ! -e {0} ]; do sleep 0.02; done; ls -ld /; touch {0}.$$) & echo $!"
    made = run(["sh", "-c", late.format(tmp_path / "go")], runs=3, output="check")
    (tmp_path / "go").touch()
    assert [subject.failed for subject in made.subjects] == [None, None]
    assert all(compare.OUTLIVED in subject.warnings for subject in made.subjects)


def test_a_server():
    server = Server(load="sleep 0.2", idle=0.2)
    made = run(["sh", "-c", "while :; do sleep 0.05; done"], runs=1, warmups=0, server=server)
    assert [subject.failed for subject in made.subjects] == [None, None]
    figures = made.measured("reheap")[0].figures
    assert figures["wall_s"] >= 0.2 and figures["idle_rss_kib"] > 100


# ---- what bypasses malloc ---------------------------------------------------------------------

PEER = """
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
static char *at, *end;
void* malloc(size_t size) {
  size = (size + 31) & ~15ul;
  if (!at || size > (size_t)(end - at)) {
    size_t more = size > 1 << 20 ? size : 1 << 20;
    at = mmap(0, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), end = at + more;
  }
  *(size_t*)at = size - 16, at += size;
  return at - size + 16;
}
void free(void* block) { (void)block; }
void* calloc(size_t n, size_t size) { return malloc(n * size); }
void* realloc(void* block, size_t size) {
  void* made = malloc(size);
  return block ? memcpy(made, block, size < ((size_t*)block)[-2] ? size : ((size_t*)block)[-2]) : made;
}
"""
HOLDS = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define MIB 1048576ul
static void* volatile kept;
int main(void) { %s return 0; }
"""


@pytest.fixture(scope="module")
def wanted(built) -> str:
    return f"system,reheap,peer={built('libpeer.so', PEER, '-shared', '-fPIC', '-fno-builtin', '-O1')}"


def test_memory_that_bypasses_malloc_is_told_once(built, wanted):
    arena = "kept = memset(mmap(0, 64 * MIB, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 64 * MIB);"
    made = run([str(built("arena", HOLDS % arena))], wanted, runs=1)
    (told,) = [text for text in made.warnings if "mapped itself" in text]
    assert told.startswith("arena holds 64 MiB of its peak of ") and "(arena), not in malloc's heap" in told


@pytest.mark.parametrize("holds", [
    "kept = memset(malloc(64 * MIB), 1, 64 * MIB);",
    "for (int i = 0; i < 500000; i++) kept = memset(malloc(99), 1, 99);",
    "char* a = mmap(0, 65536 * MIB, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); a[9] = 1;"
    "kept = memset(malloc(16 * MIB), 1, 16 * MIB);"], ids=["large", "small", "reserved"])
def test_memory_from_malloc_and_what_is_only_reserved_is_no_news(built, wanted, holds):
    made = run([str(built("holds", HOLDS % holds))], wanted, runs=1)
    assert [subject.failed for subject in made.subjects] == [None] * 3
    assert not any("mapped itself" in text for text in made.warnings)


@pytest.mark.parametrize("told", [True, False])
def test_pythons_own_arenas_are_known_and_what_switches_them_off(monkeypatch, told):
    monkeypatch.setenv("PYTHONMALLOC", "pymalloc" if told else "malloc")
    held_to_its_end = "import os; x = [str(i) for i in range(400000)]; os._exit(0)"  # however rarely it is looked at
    made = run([sys.executable, "-S", "-c", held_to_its_end], "system", runs=1)
    assert told == any("PYTHONMALLOC=malloc" in text for text in made.warnings)


# ---- again --------------------------------------------------------------------------------------


def test_the_line_that_repeats_it_runs_in_a_shell_and_asks_for_the_same(tmp_path, monkeypatch):
    place = tmp_path / "a 'b' $HOME"
    place.mkdir()
    (place / "in put").write_text("h 5\n")
    monkeypatch.chdir(place)
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("PYTHONMALLOC", "malloc")
    wanted = "system,o d=system,MALLOC_CONF=$HOME 'x',y:1,r=reheap,GLIBC_TUNABLES=glibc.malloc.arena_max=1:a=\"b\""
    words = ["compare", "--with", wanted, "--runs", "1", "--input", "in put", "--prepare", "printf 'a\nb' > /dev/null",
             "--timeout", "12500ms", "--margin", "0.0123456789", "--seed", "-3", "--no-extras", "--less-is-better",
             "h's=h ([0-9]+)", "--export", "one.json", "--", "sh", "-c",
             'cat; echo "$MALLOC_CONF\n$MALLOC_ARENA_MAX"; pwd']
    with pytest.raises(SystemExit, match="^0$"):
        cli.main(words)
    first = results.load_file("one.json")
    command = tmp_path / "bin" / "reheap"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nverb=$1; shift\nexec '{sys.executable}' -c 'from reheap_lab.cli import main; "
                       "main()' \"$verb\" --export two.json \"$@\"\n")
    command.chmod(0o755)
    clean = {name: os.environ[name] for name in ("HOME", "PYTHONPATH", native.VARIABLE) if name in os.environ}
    subprocess.run(["/bin/sh", "-c", first.reproduce], check=True, capture_output=True, cwd="/",
                   env=clean | {"PATH": f"{command.parent}:{os.environ['PATH']}"})
    second = results.load_file("two.json")
    assert second.environment == first.environment and {"MALLOC_ARENA_MAX", "PYTHONMALLOC"} <= first.environment.keys()
    for one in (first, second):
        one.settings.pop("with")
    assert (second.settings, second.command, second.cwd) == (first.settings, first.command, first.cwd)
    assert [(s.name, s.libraries, s.variables) for s in second.subjects] == [
        (s.name, s.libraries, s.variables) for s in first.subjects]
    assert second.reproduce == first.reproduce


def test_a_suite_of_two_commands_by_two_allocators(tmp_path, capsys):
    """Each where it asks to be, with what it asks for, proven as ever."""
    (tmp_path / "my.toml").write_text("""
with = "system,reheap"
runs = 3
no_extras = true
output = "check"

[case.sorted]
command = "sort {case}/in"
setup = "seq 2000 -1 1 > {case}/in"

[case.own]
command = ["sh", "-c", "test $(ls) = prepared && echo $WORD{n} > made && cat made"]
parameters = { n = [1] }
env = { WORD = "it" }
own_folder = true
prepare = "echo > prepared"
""")
    with pytest.raises(SystemExit) as ended:
        cli.main(["suite", str(tmp_path / "my.toml"), "--export", str(tmp_path / "x.json")])
    assert not ended.value.code, capsys.readouterr().err
    made = results.load_export(tmp_path / "x.json")
    assert [case.failed for case in made.cases] == [None, None]
    for case in made.cases:
        assert [len(case.comparison.measured(name)) for name in ("system", "reheap")] == [3, 3]
        assert pathlib.Path(case.comparison.subjects[1].proof["malloc"]).resolve() == REHEAP.resolve()
    assert {verdict.cases for verdict in made.verdicts} == {2}
