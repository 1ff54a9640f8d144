"""Windows' own runner, under Wine. Skipped where Wine, or the build for Windows (./dev build windows-x86_64), is
absent."""

import json
import pathlib
import subprocess

import pytest

from on_wine import BUILD, WINE, build_program, under_wine


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> pathlib.Path:
    return build_program(tmp_path_factory.mktemp("a program"))


def runner(*words, timeout=60):
    return subprocess.run([str(WINE), str(BUILD / "bin" / "reheap-runner.exe"), *map(str, words)], timeout=timeout,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)


def lines_of(path: pathlib.Path) -> dict[str, list[dict]]:
    lines = {}
    for line in map(json.loads, path.read_text().splitlines()):
        lines.setdefault(line["type"], []).append(line)
    return lines


@under_wine
def test_windows_runner_measures(program, tmp_path):
    out, said = tmp_path / "out.jsonl", tmp_path / "said"
    words = ["a b", 'quote"d', "*.c", "--", "end\\"]
    done = runner("--out", out, "--env", "LAB_WORD=hello", "--stdout", said, "--profile", 100, "--modules", "--account",
                  "--", program, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert said.read_text() == '[a b][quote"d][*.c][--][end\\]hello\n'
    lines = lines_of(out)
    assert lines["start"][0]["system"] == "windows"
    end = lines["end"][0]
    assert end["exit"] == 1000 and end["wall_us"] >= 250_000
    assert not end["timed_out"] and not end["stopped"]
    # Wine counts neither of these; what it says in their place is not passed on.
    assert all(sample["rss_kib"] > 500 and not {"cpu_us", "commit_kib"} & sample.keys() for sample in lines["sample"])
    assert not {"user_us", "system_us", "minor_faults", "peak_commit_kib"} & end.keys()
    path = f"Z:{program}".replace("/", "\\")
    assert lines["programs"] == [{"type": "programs", "programs": [{"pid": lines["start"][0]["pid"], "path": path}]}]
    modules = {one["module"].rsplit("\\")[-1]: one["samples"] for one in lines["profile"][0]["modules"]}
    assert lines["profile"][0]["source"] == "suspend" and sum(modules.values()) > 0
    assert modules.keys() & {"work.exe", "msvcrt.dll", "ntdll.dll", "[kernel]"}
    loaded = {one["path"].rpartition("\\")[2].lower(): one["wines"] for one in lines["modules"][0]["modules"]}
    assert loaded["work.exe"] is False and loaded["ntdll.dll"] is loaded["kernel32.dll"] is True


@under_wine
def test_windows_runner_ends_what_takes_too_long(program, tmp_path):
    out = tmp_path / "out.jsonl"
    assert runner("--out", out, "--timeout", 1, "--sample-ms", 0, "--", program, "hang").returncode == 0
    lines = lines_of(out)
    assert lines["end"][0]["timed_out"] and "exit" not in lines["end"][0] and lines["end"][0]["left"] == 0
    assert "sample" not in lines


@under_wine
@pytest.mark.parametrize("words, status, message", [
    (["--", "not-there.exe"], 127, "cannot run not-there.exe"),
    (["--cwd", "no-folder", "--", "{program}"], 125, "cannot run"),
    (["--stdin", "no-file", "--", "{program}"], 125, "cannot open no-file"),
    (["--count-calls", "--", "{program}"], 2, "--count-calls is for Linux"),
    (["{program}"], 2, "no command behind --"),
])
def test_windows_runner_says_what_is_wrong(program, tmp_path, words, status, message):
    done = runner("--out", tmp_path / "out.jsonl", *(word.format(program=program) for word in words))
    assert done.returncode == status
    assert message in done.stderr
