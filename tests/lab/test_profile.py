"""`reheap profile`: what the library samples in programs and processes, and what is told of it."""

import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from recording import Lab
from test_report import Page

from reheap_lab import cli_profile, native
from reheap_lab.errors import LabError, UsageError
from reheap_lab.sites import library

PROFILE = [sys.executable, "-c", "from reheap_lab.cli import main; main()", "profile"]
GO = shutil.which("go")

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64" or native.find_library("libreheap.so") is None,
    reason="the library is not built here, or samples no stacks")

SITE = "__attribute__((noinline, noclone))"
PROGRAM = SITE + """ static void *small(void) { void *p = malloc(100); mark(); return p; }
""" + SITE + """ static void *large(void) { void *p = calloc(1, 100000); mark(); return p; }
static void work(void) {
  for (int i = 0; i < 200000; i++) { void *p = small(); if (i % 4) free(p); }
  for (int i = 0; i < 200; i++) { void *p = large(); if (i % 2) free(p); }
}
"""
ALLOCATED = {"small": 20_000_000, "large": 20_000_000}
LIVE = {"small": 5_000_000, "large": 10_000_000}


class Profiled(Lab):
    def run(self, *words: str, options: tuple[str, ...] = (), **more) -> subprocess.CompletedProcess:
        return subprocess.run([*PROFILE, *options, *words], capture_output=True, text=True, timeout=120, **more)

    def program(self, main: str, *flags: str) -> str:
        return super().program(PROGRAM.replace("mark();", 'asm volatile("" ::: "memory");') + main, "-g", *flags)


@pytest.fixture
def lab(tmp_path) -> Profiled:
    return Profiled(tmp_path)


def bytes_by_site(path: pathlib.Path, figure: str) -> dict[str, int]:
    said = json.loads(path.read_text())
    found: dict[str, int] = {}
    for site in said["sites"]:
        name = said["places"][site["place"]]["function"]
        found[name] = found.get(name, 0) + site[figure]
    return found


def near(expected: dict[str, int]) -> dict:
    """Two thousand samples and more: off by so much less than once in a million times."""
    return {name: pytest.approx(value, rel=0.15) for name, value in expected.items()}


def test_a_command_is_told_by_its_sites(lab):
    out = lab.folder / "p.json"
    done = lab.run("--", lab.program("int main(void) { work(); return 7; }"),
                   options=("--rate", "4K", "--export", str(out)))
    assert done.returncode == 7, done.stderr
    assert "LIVE AT ITS END" in done.stdout and "TEMPORARY" not in done.stdout
    found = bytes_by_site(out, "bytes")
    assert {name: found[name] for name in ALLOCATED} == near(ALLOCATED)
    found = bytes_by_site(out, "never_freed_bytes")
    assert {name: found[name] for name in LIVE} == near(LIVE)
    found = bytes_by_site(out, "at_peak_bytes")
    assert {name: found[name] for name in LIVE} == near(LIVE)


def test_the_page_has_the_curve_and_the_graph(lab):
    page = lab.folder / "p.html"
    done = lab.run("--", lab.program("int main(void) { work(); usleep(20000); work(); return 0; }"),
                   options=("--rate", "4K", "--export", str(page)))
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert "What was alive" in text and "small" in text and "Temporary" not in text
    Page(text)


@pytest.mark.skipif(GO is None, reason="there is no Go")
def test_pprof_reads_what_the_library_writes(lab):
    program, file = lab.program("int main(void) { work(); return 0; }"), lab.folder / "p.pb.gz"
    subprocess.run([program], check=True, env=os.environ | {
        "LD_PRELOAD": str(native.library("libreheap.so")), "REHEAP_PROFILE": str(file), "REHEAP_PROFILE_RATE": "4K"})
    for index, expected in (("alloc_space", ALLOCATED), ("inuse_space", LIVE), ("peak_space", LIVE)):
        top = subprocess.run([GO, "tool", "pprof", "-top", "-unit=B", f"-sample_index={index}", str(file)],
                             capture_output=True, text=True, env=os.environ | {"DEBUGINFOD_URLS": ""})
        assert top.returncode == 0, top.stderr
        rows = {line.split()[-1]: line.split()[0] for line in top.stdout.splitlines() if line[:1] == " "}
        found = {name: float(rows[name].removesuffix("B")) for name in expected}
        assert found == near(expected)


def test_of_several_processes_the_largest_is_told(lab):
    out = lab.folder / "p.json"
    body = "int main(void) { if (fork() == 0) { work(); exit(0); } int s; wait(&s); return 0; }"
    done = lab.run("--", lab.program(body), options=("--rate", "4K", "--export", str(out)))
    assert done.returncode == 0, done.stderr
    assert "2 processes wrote a profile" in done.stderr
    assert bytes_by_site(out, "bytes")["small"] == pytest.approx(20_000_000, rel=0.15)


@pytest.mark.parametrize("body, status", [("_exit(3);", 3), ("kill(getpid(), SIGKILL);", -signal.SIGKILL)])
def test_what_writes_none_is_said(lab, body, status):
    done = lab.run("--", lab.program(f"int main(void) {{ work(); {body} }}"))
    assert done.returncode == status
    assert "nothing was written" in done.stderr


def test_a_process_is_asked(lab, monkeypatch):
    wait = time.sleep

    def interrupted(seconds: float) -> None:
        wait(min(seconds, 0.3))
        if seconds == 60:
            raise KeyboardInterrupt
    file, out = lab.folder / "%p.pb.gz", lab.folder / "p.json"
    program = lab.program("int main(void) { for (;;) { work(); puts(\"\"); fflush(stdout); } }")
    process = subprocess.Popen([program], stdout=subprocess.PIPE, env=os.environ | {
        "LD_PRELOAD": str(native.library("libreheap.so")), "REHEAP_PROFILE": str(file), "REHEAP_PROFILE_RATE": "4K",
        "REHEAP_PROFILE_SIGNAL": str(signal.SIGUSR2.value)})
    try:
        process.stdout.readline()
        drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
        monkeypatch.setattr(time, "sleep", interrupted)
        assert cli_profile.ask(process.pid, None, 60).stat().st_size  # and it no longer samples, as is seen below
        for _ in range(2):
            done = lab.run(options=("--pid", str(process.pid), "--seconds", "0.3", "--export", str(out)))
            assert done.returncode == 0, done.stderr
            assert bytes_by_site(out, "bytes")["small"] > 1_000_000
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        drain.wait()


def test_a_process_that_does_not_listen_is_left_alone(lab):
    process = subprocess.Popen(["sleep", "30"], env={"PATH": os.environ["PATH"]})
    deaf = subprocess.Popen(["sleep", "30"], env={"PATH": os.environ["PATH"], "REHEAP_PROFILE": "x",
                                                  "REHEAP_PROFILE_SIGNAL": "12"})
    try:
        time.sleep(0.2)  # until they are what they are to be
        with pytest.raises(UsageError, match="does not listen"):
            cli_profile.asked_how(process.pid)
        with pytest.raises(UsageError, match="would end by signal 12"):
            cli_profile.asked_how(deaf.pid)
        assert process.poll() is None and deaf.poll() is None
    finally:
        for one in (process, deaf):
            one.kill()
            one.wait()
    with pytest.raises(UsageError, match="there is no process"):
        cli_profile.asked_how(process.pid)


def test_a_process_whose_folder_is_gone_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(cli_profile, "asked_how", lambda pid: (0, tmp_path / "gone" / "p.pb.gz"))
    with pytest.raises(UsageError, match=f"there is no folder {tmp_path}/gone. Make it first"):
        cli_profile.ask(os.getpid(), None, 0)


def test_a_process_that_another_one_profiles_is_left_alone(tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(cli_profile, "asked_how", lambda pid: (0, tmp_path / "p.pb.gz"))
    monkeypatch.setattr(cli_profile, "_signal", lambda pid, number: sent.append(pid))

    def meanwhile(seconds):
        with pytest.raises(LabError, match="being profiled by another `reheap profile`"):
            cli_profile.ask(os.getpid(), None, 0)
        raise OSError("enough")
    monkeypatch.setattr(cli_profile.time, "sleep", meanwhile)
    with pytest.raises(OSError, match="enough"):
        cli_profile.ask(os.getpid(), None, 0)
    assert sent == [os.getpid()] * 2


def test_a_process_that_writes_to_no_file_is_left_alone(monkeypatch):
    monkeypatch.setattr(cli_profile, "asked_how", lambda pid: (0, pathlib.Path(os.devnull)))
    with pytest.raises(UsageError, match="to /dev/null, where nothing can be read"):
        cli_profile.ask(os.getpid(), None, 0)


@pytest.mark.parametrize("options", [(), ("--pid", "1", "--read", "{file}"), ("--read", "{file}", "--", "true"),
                                     ("--rate", "x", "--", "true"), ("--read", "{file}", "--export", "a.txt")])
def test_what_makes_no_sense_is_refused(lab, options):
    file = lab.folder / "p.pb.gz"
    file.write_bytes(gzip.compress(b""))
    done = lab.run(options=tuple(word.format(file=file) for word in options))
    assert done.returncode == 2, done.stderr


@pytest.mark.parametrize("content", [b"", b"no gzip", *(gzip.compress(coded, mtime=0) for coded in (
    b"", b"\x0a\xff\xff\x03", b"\xff" * 20, b"\x0b\x00", b"\x0a\x02\x08\x63", b"\x30\x05",
    b"\x50" + b"\x80" * 5000 + b"\x01"))])
def test_what_is_no_profile_is_said(tmp_path, content):
    file = tmp_path / "p.pb.gz"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="is no profile"):
        library.read(file)


def test_a_few_bytes_that_unpack_to_much_are_refused(tmp_path):
    file = tmp_path / "p.pb.gz"
    file.write_bytes(gzip.compress(bytes(library.LARGEST + 1), 1))
    assert file.stat().st_size < 1 << 20
    with pytest.raises(UsageError, match="it holds more than 64 MiB"):
        library.read(file)


def test_an_export_is_not_taken_for_one(lab):
    file = lab.folder / "p.pb.gz"
    done = lab.run("--", lab.program("int main(void) { work(); return 0; }"), options=("--export", str(file)))
    assert done.returncode == 0, done.stderr
    with pytest.raises(UsageError, match="was written by --export"):
        library.read(file)


def test_a_profile_cut_or_changed_anywhere_is_read_or_refused(lab):
    file, cut = lab.folder / "p.pb.gz", lab.folder / "cut.pb.gz"
    program = lab.program("int main(void) { work(); return 0; }")
    subprocess.run([program], check=True, env=os.environ | {
        "LD_PRELOAD": str(native.library("libreheap.so")), "REHEAP_PROFILE": str(file)})
    whole = gzip.decompress(file.read_bytes())
    changed = (whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1:] for at in range(len(whole)) for bits in (2, 255))
    for damaged in (*(whole[:end] for end in range(0, len(whole), 7)), *changed):
        cut.write_bytes(gzip.compress(damaged, 1))
        try:
            library.read(cut)
        except UsageError:
            pass
