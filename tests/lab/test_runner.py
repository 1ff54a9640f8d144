"""The native runner and the witness, as Python and people without Python use them."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

import reheap
import reheap_lab

NATIVE = pathlib.Path(reheap.folder()).resolve()
RUNNER = NATIVE / "bin" / "reheap-runner"
WITNESS = NATIVE / "lib" / "libreheap-witness.so"
REHEAP = NATIVE / "lib" / "libreheap.so"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the runner of Linux")


class Measured:
    """The lines that the runner wrote."""

    def __init__(self, path: pathlib.Path):
        self.lines = [json.loads(line) for line in path.read_text().splitlines()]

    def all(self, kind: str) -> list[dict]:
        return [line for line in self.lines if line["type"] == kind]

    def one(self, kind: str) -> dict:
        (line,) = self.all(kind)
        return line


@pytest.fixture
def measure(tmp_path):
    """Runs words under the runner, which must succeed; gives what it wrote."""

    def run(*words, options=()):
        out = tmp_path / "lines"
        subprocess.run([RUNNER, "--out", out, *options, "--", *words], check=True, timeout=60, stdin=subprocess.DEVNULL)
        return Measured(out)

    return run


def refused(*words) -> tuple[int, str]:
    """How the runner ends, and what it says, when it cannot do its part."""
    done = subprocess.run([RUNNER, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def burn(seconds) -> str:
    return f"import time\nwhile time.process_time() < {seconds}: pass"


def wait_for(condition, seconds=20):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not come"
        time.sleep(0.01)


def compiled(tmp_path, text, *flags) -> str:
    source = tmp_path / "program.c"
    source.write_text(text)
    program = tmp_path / "program"
    done = subprocess.run(["cc", "-O1", *flags, "-o", program, source], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("no C compiler that does this: " + done.stderr[-200:])
    return str(program)


# ---- what it measures -------------------------------------------------------------------------


def test_lines_begin_with_start_and_finish_with_end(measure):
    measured = measure("sleep", "0.1")
    assert [measured.lines[0]["type"], measured.lines[-1]["type"]] == ["start", "end"]
    start = measured.one("start")
    assert start["system"] == "linux" and start["pid"] > 0 and start["cores"] >= 1
    assert start["runner"] == reheap_lab.__version__
    assert start["time"].endswith("Z")
    end = measured.one("end")
    assert end["exit"] == 0 and "signal" not in end
    assert not end["timed_out"] and not end["stopped"]
    assert end["wall_us"] >= 100_000


def test_the_status_of_the_command_is_told_and_is_not_the_runners(measure):
    assert measure("sh", "-c", "exit 7").one("end")["exit"] == 7
    end = measure("sh", "-c", "kill -SEGV $$").one("end")
    assert end["signal"] == signal.SIGSEGV and "exit" not in end


def test_peak_and_faults_are_those_of_the_memory_touched(measure):
    mebibytes = 96
    end = measure(*python(f"x = bytearray(b'1' * ({mebibytes} << 20))"), options=["--sample-ms", "0"]).one("end")
    assert mebibytes * 1024 < end["peak_rss_kib"] < 4 * mebibytes * 1024
    assert end["minor_faults"] > 0 and end["major_faults"] >= 0
    assert end["floor_rss_kib"] < 4096


def test_figures_are_the_commands_not_this_interpreters(measure):
    ballast = bytearray(64 << 20)
    ballast[::4096] = b"x" * len(ballast[::4096])
    end = measure("sleep", "0.2").one("end")
    assert end["wall_us"] >= 200_000 and end["user_us"] + end["system_us"] < 100_000 and end["peak_rss_kib"] < 8 << 10


@pytest.mark.skipif(not shutil.which("time"), reason="needs Debian's package time")
@pytest.mark.parametrize("command", [["head", "-c", "1000000",
                                      "/dev/zero"], ["perl", "-e", '$a = "x" x 50_000_000; print length $a']])
def test_figures_agree_with_time(measure, command):
    end = measure(*command, options=["--stdout", "/dev/null"]).one("end")
    told = subprocess.run([shutil.which("time"), "-f", "%M %R", *command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    peak, faults = map(int, told.stderr.split())
    assert end["peak_rss_kib"] == pytest.approx(peak, abs=0.05 * peak + 256)
    assert end["minor_faults"] == pytest.approx(faults, abs=0.05 * faults + 64)


def test_peak_is_that_of_a_child_waited_for(measure):
    child = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'x = bytearray(b\"1\" * (64 << 20))'])"
    assert measure(*python(child)).one("end")["peak_rss_kib"] > 64 * 1024


def test_the_peak_of_all_counts_each_process_and_what_they_share_once(measure):
    def end(shared: int, own: int) -> dict:
        """Four children that have grown, and go when all have been there for a while."""
        return measure(*python(f"""
import os, time
shared, (said, say), (told, tell) = bytearray({shared << 20}), os.pipe(), os.pipe()
for i in range(4):
    if os.fork() == 0:
        os.close(tell)
        own = bytearray({own << 20})
        os.write(say, b"!")
        os.read(told, 1)
        os._exit(0)
for i in range(4): os.read(said, 1)
time.sleep(1)
os.close(tell)
for i in range(4): os.wait()
""")).one("end")
    apart, together = end(1, 30), end(120, 0)
    assert apart["peak_tree_pss_kib"] > 4 * 30 * 1024 > 2 * apart["peak_rss_kib"]
    assert together["peak_tree_rss_kib"] > 4 * 120 * 1024 > 2 * together["peak_tree_pss_kib"]
    assert "peak_tree_pss_kib" not in measure("sleep", "0.1").one("end")


def test_processor_time_of_children_counts(measure):
    measured = measure("sh", "-c", '"$0" -S -c "$1" & "$0" -S -c "$1" & wait', sys.executable, burn(0.3))
    end = measured.one("end")
    used = end["user_us"] + end["system_us"]
    assert used >= 600_000
    seen = measured.all("sample")[-1]
    assert 300_000 < seen["cpu_us"] <= used * 1.1
    assert max(sample["processes"] for sample in measured.all("sample")) >= 3


def test_samples_show_memory_and_threads(measure):
    code = "import threading, time\nx = bytearray(b'1' * (50 << 20))\n" \
           "for _ in range(3): threading.Thread(target=time.sleep, args=(0.3,)).start()"
    samples = measure(*python(code)).all("sample")
    assert max(sample["rss_kib"] for sample in samples) > 50 * 1024
    assert max(sample["commit_kib"] for sample in samples) > 50 * 1024
    assert max(sample["threads"] for sample in samples) == 4
    times = [sample["t_us"] for sample in samples]
    assert times == sorted(times) and len(times) >= 5
    spent = [sample["cpu_us"] for sample in samples]
    assert spent == sorted(spent)


def test_no_samples_when_none_are_wanted(measure):
    assert not measure("sleep", "0.1", options=["--sample-ms", "0"]).all("sample")


def test_memory_lent_by_vfork_is_not_counted_twice(measure, tmp_path):
    text = "#define _GNU_SOURCE\n#include <string.h>\n#include <unistd.h>\nstatic char memory[64 << 20];\n" \
           "int main(void) { memset(memory, 1, sizeof memory);\n" \
           "if (vfork() == 0) { usleep(300000); _exit(0); } return 0; }\n"
    end = measure(compiled(tmp_path, text)).one("end")
    assert 64 * 1024 < end["peak_tree_rss_kib"] < 96 * 1024


def test_processes_that_leave_their_parent_are_still_counted(measure):
    measured = measure("sh", "-c", "(setsid sleep 0.4 &) ; sleep 0.2")
    assert max(sample["processes"] for sample in measured.all("sample")) >= 2
    assert measured.one("end")["left"] == 1


def test_children_of_other_threads_are_found(measure):
    code = "import subprocess, threading\n" \
           "t = threading.Thread(target=subprocess.run, args=(['sleep', '0.5'],)); t.start(); t.join()"
    measured = measure(*python(code))
    assert max(sample["processes"] for sample in measured.all("sample")) == 2


# ---- watching one process ---------------------------------------------------------------------


def test_watch_tells_of_the_named_process_alone(measure):
    code = "import subprocess; x = bytearray(b'1' * (64 << 20)); subprocess.run(['sleep', '0.3'])"
    measured = measure(*python(code), options=["--watch", "SLEEP"])
    end = measured.one("end")
    assert end["watched"] != measured.one("start")["pid"]
    assert end["peak_rss_kib"] < 16 * 1024
    assert all(sample["rss_kib"] < 16 * 1024 for sample in measured.all("sample"))


def test_watch_waits_for_one_that_left_its_parent(measure):
    script = "(setsid sleep 0.6 &) ; timeout 0.2 tail -f /dev/null"
    end = measure("sh", "-c", script, options=["--watch", "sleep"]).one("end")
    assert end["watched"] > 0 and end["voluntary_switches"] > 0


def test_watch_accounts_for_what_begins_later_too(measure, tmp_path):
    """Of those who lose their parents, without ptrace; each ends before the command does."""
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    script = f"cd {tmp_path}; (tail -f /dev/null & echo $! > tail); " \
             f"({sys.executable} -c '{burn}' & echo $! > it); " \
             "while kill -0 $(cat it) 2> /dev/null; do sleep 0.01; done; kill $(cat tail)"
    measured = measure("sh", "-c", script, options=["--watch", "tail", "--account"])
    programs, end = measured.one("programs")["programs"], measured.one("end")
    assert [one["path"] for one in programs[:2]] == ["sh", "tail"] and len(programs) == 3
    assert all(one["began_ns"] <= one["ended_ns"] and "parent" not in one for one in programs)
    assert end["watched"] == programs[1]["pid"] and programs[2]["cpu_us"] >= 150_000
    assert programs[2]["cpu_us"] <= end["user_us"] + end["system_us"] == sum(one["cpu_us"] for one in programs[1:])


def test_watch_that_finds_nothing_leaves_the_figures_out(measure):
    end = measure("true", options=["--watch", "nobody"]).one("end")
    assert not {"watched", "user_us", "peak_rss_kib", "minor_faults"} & end.keys()
    assert end["exit"] == 0


# ---- where the time goes ----------------------------------------------------------------------


def time_by_module(measured) -> dict[str, int]:
    return {pathlib.Path(line["module"]).name: line["samples"] for line in measured.one("profile")["modules"]}


both_ways = pytest.mark.parametrize("way", [[], ["--profile-by-stops"]], ids=["sampler", "stops"])


@both_ways
def test_a_profile_has_a_sample_for_each_moment_of_the_time_used(measure, way):
    measured = measure(*python(burn(0.5)), options=["--profile", "500", *way])
    profile = measured.one("profile")
    assert profile["hz"] == 500 and profile["lost"] == 0
    assert profile["source"] in (["suspend"] if way else ["perf_event", "suspend"])
    assert 150 < sum(time_by_module(measured).values()) < 1000  # 250 and what starting took


@both_ways
def test_a_profile_follows_children_and_names_their_files(measure, tmp_path, way):
    # It makes no calls: on a busy machine those are where a thread loses its processor, and is found by stops.
    text = "int main(void) { volatile long n = 0; for (long i = 0; i < 150000000; i++) n += i; return 0; }\n"
    program = compiled(tmp_path, text)
    found = time_by_module(measure("sh", "-c", f"{program} & {program} & wait", options=["--profile", "500", *way]))
    assert found["program"] > 0.7 * sum(found.values())


@both_ways
def test_a_profile_follows_threads_into_libraries(measure, way):
    code = "import threading, zlib\nwork = lambda: [zlib.compress(b'abcd' * 250000) for _ in range(40)]\n" \
           "threads = [threading.Thread(target=work) for _ in range(3)]\n" \
           "for thread in threads: thread.start()\nfor thread in threads: thread.join()"
    found = time_by_module(measure(*python(code), options=["--profile", "500", *way]))
    libraries = sum(samples for name, samples in found.items() if "libz" in name or "zlib" in name)
    if libraries == 0:
        pytest.skip("this Python holds zlib in its program")
    assert libraries > 0.5 * sum(found.values())


# ---- calls to the system ----------------------------------------------------------------------


CALLS = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void* work(void* count) {
  for (long i = 0; i < (long)count; i++) {
    void* p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, 8192, MADV_DONTNEED);
    mprotect(p, 4096, PROT_READ);
    p = mremap(p, 8192, 4096, 0);
    munmap(p, 4096);
    sbrk(i % 2 ? 4096 : -4096);
  }
  return 0;
}
int main(int argc, char** argv) {
  long count = argc > 1 ? atol(argv[1]) : 0;
  pthread_t thread;
  pthread_create(&thread, 0, work, (void*)count);
  pthread_join(thread, 0);
  if (fork() == 0) { work((void*)count); _exit(0); }
  wait(0);
  return 0;
}
"""


def test_calls_are_counted_in_threads_and_children(measure, tmp_path):
    program = compiled(tmp_path, CALLS, "-pthread")
    none, some = (measure(program, str(count), options=["--count-calls"]).one("calls") for count in (0, 100))
    more = {name: some[name] - none[name] for name in some if name != "type"}
    assert more == {"mmap": 200, "munmap": 200, "mremap": 200, "madvise": 200, "mprotect": 200, "brk": 200}


def test_counting_leaves_signals_and_statuses_as_they_were(measure, tmp_path):
    assert measure("sh", "-c", "sh -c 'exit 3'; exit $?", options=["--count-calls"]).one("end")["exit"] == 3
    script = "trap 'echo caught' USR1; kill -USR1 $$; kill -TERM $$"
    end = measure("sh", "-c", script, options=["--count-calls", "--stdout", tmp_path / "output"]).one("end")
    assert end["signal"] == signal.SIGTERM
    assert (tmp_path / "output").read_text() == "caught\n"


@pytest.mark.parametrize("options", [["--count-calls"], ["--profile", "100", "--profile-by-stops"]])
def test_timeout_while_following(measure, options):
    end = measure("sh", "-c", "sleep 100 & sleep 100", options=[*options, "--timeout", "0.3"]).one("end")
    assert end["timed_out"] and "left" not in end


# ---- what the command is given ----------------------------------------------------------------


def test_environment_directory_and_files(measure, tmp_path, monkeypatch):
    monkeypatch.setenv("TO_REPLACE", "old")
    monkeypatch.setenv("TO_REMOVE", "there")
    (tmp_path / "in").write_text("from the file\n")
    script = 'cat; echo "$TO_REPLACE ${TO_REMOVE-gone} $(pwd)"; echo wrong >&2'
    measure("sh", "-c", script, options=[
        "--env", "TO_REPLACE=new=value", "--unset", "TO_REMOVE", "--cwd", "/", "--stdin", tmp_path / "in",
        "--stdout", tmp_path / "output", "--stderr", tmp_path / "errors"])
    assert (tmp_path / "output").read_text() == "from the file\nnew=value gone /\n"
    assert (tmp_path / "errors").read_text() == "wrong\n"


def test_the_command_starts_with_no_signal_blocked_and_no_file_of_ours(measure, tmp_path):
    code = "import os; print(open('/proc/self/status').read()); print('files', os.listdir('/proc/self/fd'))"
    measure(*python(code), options=["--stdout", tmp_path / "output"])
    output = (tmp_path / "output").read_text()
    assert "\nSigBlk:\t0000000000000000\n" in output
    assert "files ['0', '1', '2', '3']" in output  # 3: the folder that is listed


# ---- ending -----------------------------------------------------------------------------------


def test_timeout_kills_all_that_was_started(measure, tmp_path):
    script = "sleep 100 & echo $! >> pids; setsid sleep 100 & echo $! >> pids; wait"
    measured = measure("sh", "-c", script, options=["--timeout", "0.3", "--cwd", tmp_path])
    end = measured.one("end")
    assert end["timed_out"] and end["signal"] == signal.SIGKILL and "left" not in end
    for process in (tmp_path / "pids").read_text().split():
        assert not pathlib.Path("/proc", process, "exe").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on(tmp_path, number):
    out = tmp_path / "lines"
    script = f"trap 'exit 5' {number.name[3:]}; echo > ready; while :; do sleep 0.05; done"
    runner = subprocess.Popen([RUNNER, "--out", out, "--cwd", tmp_path, "--", "sh", "-c", script],
                              preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # a shell's job may ignore it
    wait_for((tmp_path / "ready").exists)
    runner.send_signal(number)
    assert runner.wait(20) == 0
    end = Measured(out).one("end")
    assert end["stopped"] and end["exit"] == 5


def test_all_that_was_started_ends_with_who_listens_to_the_runner(tmp_path):
    out = tmp_path / "lines"
    script = "trap '' TERM; sleep 100 & echo $! >> pids; setsid sleep 100 & echo $! >> pids; echo > ready; wait"
    runner = subprocess.Popen([RUNNER, "--out", out, "--cwd", tmp_path, "--", "sh", "-c", script],
                              stderr=subprocess.PIPE)
    wait_for((tmp_path / "ready").exists)
    runner.stderr.close()
    assert runner.wait(20) == 0
    end = Measured(out).one("end")
    assert end["stopped"] and end["signal"] == signal.SIGKILL and "left" not in end
    for process in (tmp_path / "pids").read_text().split():
        assert not pathlib.Path("/proc", process, "exe").exists()


def test_a_killed_runner_leaves_its_lines_and_no_command(tmp_path):
    out = tmp_path / "lines"
    runner = subprocess.Popen([RUNNER, "--out", out, "--", "sleep", "100"])
    wait_for(lambda: out.exists() and out.read_text().count("sample") >= 3)
    runner.kill()
    runner.wait()
    measured = Measured(out)
    gone = pathlib.Path("/proc", str(measured.one("start")["pid"]), "exe")
    wait_for(lambda: not gone.exists())
    assert len(measured.all("sample")) >= 3


# ---- what it cannot do ------------------------------------------------------------------------


def test_commands_that_cannot_run(tmp_path):
    out = str(tmp_path / "lines")
    plain = tmp_path / "plain"
    plain.write_text("text")
    assert refused("--out", out, "--", "no-such-command") == (
        127, "reheap-runner: cannot find no-such-command: No such file or directory\n")
    status, message = refused("--out", out, "--", str(plain))
    assert status == 126 and f"cannot execute {plain}" in message
    for option in ("--account", "--count-calls"):  # which trace it, and would stop it at its end
        assert refused(option, "--out", out, "--", "no-such-command")[0] == 127
        assert refused(option, "--cwd", "/no/such", "--out", out, "--", "true")[0] == 125


@pytest.mark.parametrize("options, named", [
    (["--cwd", "/no/such"], "/no/such"),
    (["--stdin", "/no/such"], "/no/such"),
    (["--stdout", "/no/such/file"], "/no/such/file"),
])
def test_what_cannot_be_opened_is_named(tmp_path, options, named):
    status, message = refused("--out", str(tmp_path / "lines"), *options, "--", "true")
    assert status == 125 and named in message


def test_a_full_disk_is_told():
    status, message = refused("--out", "/dev/full", "--", "true")
    assert status == 125 and "/dev/full" in message


@pytest.mark.parametrize("words, named", [
    ([], "--out FILE is missing"),
    (["--out", "x"], "no command"),
    (["--out", "x", "--timeout", "0", "--", "true"], "above 0"),
    (["--out", "x", "--timeout", "soon", "--", "true"], "'soon'"),
    (["--out", "x", "--sample-ms", "-1", "--", "true"], "from 0 to"),
    (["--out", "x", "--sample-ms", "1x", "--", "true"], "'1x'"),
    (["--out", "x", "--profile", "0", "--", "true"], "from 1 to"),
    (["--out", "x", "--env", "NAME", "--", "true"], "NAME=VALUE"),
    (["--out", "x", "--colour", "--", "true"], "--help"),
    (["--out", "x", "--count-calls", "--profile", "9", "--", "true"], "does not go with"),
])
def test_wrong_options(words, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, message = refused(*words)
    assert status == 2 and named in message
    assert not (tmp_path / "x").exists()


# ---- who ran ----------------------------------------------------------------------------------


def programs(measure, *words, options=()) -> list[dict]:
    (line,) = measure(*words, options=["--account", *options]).all("programs")
    return line["programs"]


def test_each_program_of_each_process_is_told_with_its_time(measure, tmp_path):
    burning = compiled(tmp_path, "int main(void) { for (volatile long i = 0; i < 100000000; i++); return 0; }\n")
    found = programs(measure, "sh", "-c", f"ls / > /dev/null; (exec {burning}); exec env -i {burning}")
    names = [os.path.basename(os.path.realpath(one["path"])) for one in found]
    shell = os.path.basename(os.path.realpath(shutil.which("sh")))
    assert names == [shell, shell, "ls", shell, "program", "env", "program"]
    used = [one["cpu_us"] for one in found]
    assert sum(used[i] for i in (4, 6)) > 0.8 * sum(used) and min(used[4], used[6]) > 0.3 * max(used[4], used[6])
    assert found[0]["pid"] == found[5]["pid"] == found[6]["pid"]
    assert [one.get("parent") for one in found] == [None, 0, None, 0, None, None, None]
    assert found[0]["ended_ns"] <= found[5]["began_ns"] <= found[5]["ended_ns"] <= found[6]["began_ns"]


def test_threads_are_part_of_their_process_and_children_are_not(measure):
    code = f"import os, threading\nt = threading.Thread(target=lambda: exec({burn(0.2)!r}))\nt.start(); t.join()\n" \
           f"child = os.fork()\nif child == 0:\n  x = bytearray(60 << 20); exec({burn(0.3)!r}); os._exit(0)\n" \
           "os.waitpid(child, 0)"
    parent, child = programs(measure, *python(code))
    assert parent["cpu_us"] >= 200_000 and child["parent"] == 0 and child["pid"] != parent["pid"]
    assert child["cpu_us"] >= 300_000 and child["peak_kib"] > 60 * 1024 > parent["peak_kib"]


def test_many_processes_are_all_accounted_for(measure):
    found = programs(measure, "sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true & i=$((i+1)); done; wait")
    assert sum(os.path.basename(one["path"]) == "true" for one in found) == 200


def test_threads_that_end_before_their_birth_is_told_are_no_processes(measure, tmp_path):
    """Two threads make short ones, so that the runner is told of an end while a birth waits."""
    short_threads = compiled(tmp_path, r"""
        #include <pthread.h>
        static void* nothing(void* unused) { return unused; }
        static void* make(void* unused) {
          for (int i = 0; i < 3000; i++) {
            pthread_t thread;
            if (pthread_create(&thread, 0, nothing, 0) != 0) return unused;
            pthread_join(thread, 0);
          }
          return unused;
        }
        int main(void) {
          pthread_t makers[2];
          for (int i = 0; i < 2; i++) pthread_create(&makers[i], 0, make, 0);
          for (int i = 0; i < 2; i++) pthread_join(makers[i], 0);
          return 0;
        }
        """)
    assert [os.path.basename(one["path"]) for one in programs(measure, short_threads)] == ["program"]


# ---- the witness ------------------------------------------------------------------------------


def served(measure, tmp_path, *words, preload=()) -> dict[str, list[str]]:
    """For each function, the files that served it in the processes of a command, each named once."""
    out = tmp_path / "witnesses"
    libraries = " ".join(str(library) for library in [*preload, WITNESS])
    measure(*words, options=["--env", f"LD_PRELOAD={libraries}", "--env", f"REHEAP_WITNESS={out}"])
    found: dict[str, list[str]] = {}
    processes = set()
    for line in out.read_text().splitlines():
        process, _, function, path = line.split("\t")
        processes.add(process)
        if path not in found.setdefault(function, []):
            found[function].append(path)
    found["processes"] = sorted(processes)
    return found


FUNCTIONS = ["malloc", "free", "calloc", "realloc"]
OWN_MALLOC = """
#include <stddef.h>
static char all[99999]; static size_t used;
void* malloc(size_t n) { void* p = all + used; used += (n + 15) & ~15ul; return p; }
void free(void* p) { (void)p; }
int main(void) { return 0; }
"""


def test_the_witness_names_the_c_library_when_nothing_is_preloaded(measure, tmp_path):
    found = served(measure, tmp_path, "sh", "-c", "ls / > /dev/null; true")
    assert len(found["processes"]) == 2
    for function in FUNCTIONS:
        (path,) = found[function]
        assert "libc.so" in path


@pytest.mark.skipif(not REHEAP.exists(), reason="the allocator was not built with the lab")
def test_the_witness_names_the_allocator_in_each_process(measure, tmp_path):
    found = served(measure, tmp_path, "sh", "-c", "ls / > /dev/null; true", preload=[REHEAP])
    assert len(found["processes"]) == 2
    assert [found[function] for function in FUNCTIONS] == [[str(REHEAP)]] * 4


def test_a_jump_in_the_program_is_not_taken_for_the_allocator(measure, tmp_path):
    text = "#include <stdlib.h>\nint main(void) { void* (*volatile f)(size_t) = malloc; free(f(1)); return 0; }\n"
    found = served(measure, tmp_path, compiled(tmp_path, text, "-no-pie", "-fno-pic"))
    assert all("libc.so" in path for path in found["malloc"])


def test_objects_with_the_old_hash_table_alone_are_looked_into(measure, tmp_path):
    program = compiled(tmp_path, OWN_MALLOC, "-fno-builtin", "-rdynamic", "-Wl,--hash-style=sysv")
    assert served(measure, tmp_path, program)["malloc"] == [program]


def test_a_program_that_is_its_own_allocator_is_named(measure, tmp_path):
    program = compiled(tmp_path, OWN_MALLOC, "-fno-builtin", "-rdynamic")
    found = served(measure, tmp_path, program)
    assert found["malloc"] == [program] and "libc.so" in found["calloc"][0]


# ---- who mapped what --------------------------------------------------------------------------

MAPPING = """
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static const size_t kMiB = 1 << 20;
static char* area(size_t mib) { return mmap(0, mib * kMiB, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); }
static char* volatile kept; /* or compilers leave out what nobody reads */
static char* touched(char* at, size_t mib) { return kept = memset(at, 1, mib * kMiB); }
int main(int count, char** words) {
  (void)count;
  %s
  return 0;
}
"""


def mapped_mib(measure, tmp_path, body, *words, preload=()) -> list[int | None]:
    """Of each program: what its own file had mapped at its end; None where that is unknown."""
    program = compiled(tmp_path, MAPPING % body)
    libraries = ":".join(map(str, [WITNESS, *preload]))
    told = programs(measure, program, *words, options=["--sample-ms", "0", "--env", f"LD_PRELOAD={libraries}"])
    own = [{one["path"]: one["kib"] for one in process["mapped"]}.get(program, 0) if "mapped" in process else None
           for process in told]
    return [kib if kib is None else round(kib / 1024) for kib in own]


MAPPED = {
    "an arena": ("touched(area(32), 32);", [32]),
    "shared memory": (
        "touched(mmap(0, 32 * kMiB, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 32); touched(area(5), 5);", [37]),
    "plain malloc": ("touched(malloc(32 * kMiB), 32);", [0]),
    "many small blocks": ("for (int i = 0; i < 99999; i++) kept = memset(malloc(99), 1, 99);", [0]),
    "a reservation beside malloc": ("area(4096)[5] = 1; touched(malloc(32 * kMiB), 32); area(1 << 17)[5] = 1;", [0]),
    "half of a reservation": (
        "char* a = area(1 << 17); touched(a + 64 * kMiB, 32); touched(malloc(9 * kMiB), 9);", [32]),
    "what is left after munmap": ("char* a = touched(area(48), 48); munmap(a + 8 * kMiB, 8 * kMiB);", [40]),
    "what has moved": ("touched(mremap(touched(area(8), 8), 8 * kMiB, 40 * kMiB, MREMAP_MAYMOVE), 40);", [40]),
    "a move that failed": ("mremap(touched(area(8), 8), 8 * kMiB, 40 * kMiB, 64);", [8]),
    "a file put over it": ("char* a = touched(area(32), 32); int f = memfd_create(\"f\", 0); ftruncate(f, 16 * kMiB);"
                           "touched(mmap(a, 16 * kMiB, 3, MAP_SHARED | MAP_FIXED, f, 0), 16);", [16]),
    "the break": ("touched(sbrk(40 * kMiB), 40); sbrk(-8 * (long)kMiB);", [32]),
    "a page here and there": (
        "for (int i = 0; i < 8000; i++) { char* a = area(1); a[0] = 1; munmap(a + 4096, kMiB - 4096); }", [31]),
    "a child": ("touched(area(16), 16); if (fork() == 0) { touched(area(16), 16); _exit(0); } wait(0);", [16, 32]),
    "another program": ("if (count > 1) { touched(area(16), 16); return 0; } touched(area(32), 32);"
                        "execl(\"/proc/self/exe\", \"x\", \"y\", (char*)0);", [None, 16]),
    "killed": ("touched(area(32), 32); kill(getpid(), SIGKILL);", [32]),
    "nothing but read, write and exit": ("touched(area(32), 32); prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);"
                                         "syscall(SYS_exit, 0);", [32]),
    "too little": ("touched(area(2), 2);", [None]),
}


@pytest.mark.parametrize("kind", MAPPED)
def test_what_a_program_maps_itself(measure, tmp_path, kind):
    body, expected = MAPPED[kind]
    assert mapped_mib(measure, tmp_path, "(void)words; " + body) == expected


def test_what_was_mapped_is_looked_at_while_it_is_there(measure, tmp_path):
    folder, out = tmp_path / "place", tmp_path / "watched"
    folder.mkdir()
    wait = "touched(area(32), 32); close(creat(\"there\", 0600)); while (access(\"go\", F_OK)) usleep(1000);"
    program = compiled(tmp_path, "#include <fcntl.h>\n" + MAPPING % ("(void)words; char* a = area(1);" + wait.replace(
        "touched(area(32), 32)", "char* all = touched(area(32), 32)") + "munmap(all, 32 * kMiB); munmap(a, kMiB);"))
    runner = subprocess.Popen([RUNNER, "--out", out, "--account", "--cwd", folder, "--env",
                               f"LD_PRELOAD={WITNESS}", "--", program])
    wait_for(lambda: (folder / "there").exists())
    seen = out.read_text().count("sample")
    wait_for(lambda: out.read_text().count("sample") > seen + 2)
    (folder / "go").touch()
    assert runner.wait(timeout=20) == 0
    (one,) = Measured(out).one("programs")["programs"]
    assert 30 * 1024 <= one["mapped"][0]["kib"] <= 32 * 1024


def test_a_library_between_is_not_taken_for_the_one_who_asks(measure, tmp_path):
    passing = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stddef.h>\n#include <sys/types.h>\n" \
              "void* mmap(void* a, size_t n, int p, int f, int d, off_t o) {\n" \
              "  void* (*next)(void*, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, \"mmap\");\n" \
              "  void* result = next(a, n, p, f, d, o); return result; }\n"
    (tmp_path / "between").mkdir()
    library = compiled(tmp_path / "between", passing, "-shared", "-fPIC")
    assert mapped_mib(measure, tmp_path, "(void)words; touched(area(32), 32);", preload=[library]) == [32]


def test_a_program_with_an_mmap_of_its_own_is_left_alone(measure, tmp_path):
    text = "#include <string.h>\n#include <sys/mman.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n" \
           "void* mmap(void* a, size_t n, int p, int f, int d, off_t o) {\n" \
           "  return (void*)syscall(SYS_mmap, a, n, p, f, d, o); }\n" \
           "int main(void) { memset(mmap(0, 1 << 25, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1 << 25); return 0; }\n"
    program = compiled(tmp_path, text, "-rdynamic")
    (one,) = programs(measure, program, options=["--env", f"LD_PRELOAD={WITNESS}"])
    assert one["mapped"] == [] and one["private_kib"] >= 31 * 1024  # the kernel's sums lag a little


def test_threads_signals_and_children_that_map_at_once_lose_nothing(measure, tmp_path):
    body = """
  (void)words;
  struct sigaction mapping = {.sa_handler = handle, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &mapping, 0);
  struct itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, 0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, churn, 0);
  for (int i = 0; i < 20; i++) if (fork() == 0) { churn(0); _exit(0); }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  while (wait(0) > 0);
  touched(area(32), 32);
"""
    churn = "static void* churn(void* w) { for (int i = 0; i < 3000; i++) { char* a = area(1); a[7] = 1; " \
            "munmap(a, kMiB); } return w; }\n" \
            "static void handle(int s) { (void)s; munmap(area(1), kMiB); }\n"
    text = ("#include <pthread.h>\n#include <sys/time.h>\n" + MAPPING % body).replace("int main", churn + "int main")
    program = compiled(tmp_path, text, "-pthread")
    found = programs(measure, program, options=["--env", f"LD_PRELOAD={WITNESS}"])
    assert len(found) == 21
    assert 32 * 1024 <= sum(one["kib"] for one in found[0]["mapped"]) < 40 * 1024


# ---- events -----------------------------------------------------------------------------------


def counted(measure, *words, events) -> dict[str, dict]:
    (line,) = measure(*words, options=["--events", events]).all("counters")
    return {one.pop("event"): one for one in line["counters"]}


def test_the_kernel_counts_for_the_command_its_threads_and_its_children(measure):
    touching = "import os, threading\ndef touch(): bytearray(b'1' * (16 << 20))\n" \
               "t = threading.Thread(target=touch); t.start(); t.join()\n" \
               "child = os.fork()\nif child == 0: touch(); os._exit(0)\nos.waitpid(child, 0)"
    found = counted(measure, *python(touching), events="task-clock,page-faults")
    if not found:
        pytest.skip("the kernel counts nothing for us (perf_event_paranoid)")
    assert found["page-faults"]["value"] >= 2 * (16 << 20) / 4096 / 2  # a huge page is one
    assert found["task-clock"]["value"] > 0
    for one in found.values():
        assert 0 < one["running_ns"] <= one["enabled_ns"]


def test_what_runs_before_the_command_is_not_counted(measure):
    once = counted(measure, "true", events="page-faults")
    assert not once or 0 < once["page-faults"]["value"] < 1000


def test_events_that_the_machine_does_not_count_are_left_out(measure):
    found = counted(measure, "true", events="instructions,cycles")
    assert all(one["value"] > 0 for one in found.values())
    assert not measure("true").all("counters")


def test_an_event_that_nobody_knows(tmp_path):
    status, message = refused("--out", tmp_path / "x", "--events", "cycles,wishes", "--", "true")
    assert status == 2 and "'wishes'" in message
