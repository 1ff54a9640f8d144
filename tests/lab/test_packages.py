"""What the suite fetches: wheels from a folder by the real pip, Debian packages by an apt-get that is made up."""

import hashlib
import os
import shutil
import zipfile

import pytest

from reheap_lab import cli
from reheap_lab.suite import command, packages
from reheap_lab.suite.cases import Needs, Planned
from reheap_lab.suite.packages import Missing


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "reheap-lab" / "packages"


def wheel(folder, name: str = "tool", version: str = "1.0") -> str:
    """A wheel with one file, and the line that asks for it."""
    folder.mkdir(exist_ok=True)
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/data", "inside")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                                             "Requires-Dist: another\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\n"
                                          "Tag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{name}/data,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Where pip looks, and nowhere else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path / "index"


def test_a_wheel_is_fetched_once(index, cache, monkeypatch):
    needs = Needs((wheel(index),))
    assert packages.present(needs) is None
    made = packages.fetch(needs)
    assert (made.folder / "tool/data").read_text() == "inside" and made.versions == {"tool": "1.0"}
    assert not (made.folder / "another").exists()
    shutil.rmtree(index)
    assert packages.fetch(needs) == packages.present(needs) == made
    assert [path.name for path in cache.iterdir()] == [made.folder.name]


def test_bytes_that_are_not_the_ones_meant_are_refused(index, cache):
    line = wheel(index)
    with pytest.raises(Missing, match="tool==1.0 could not be fetched: .*"):
        packages.fetch(Needs((line[:-4] + "0000",)))
    assert list(cache.iterdir()) == []


def test_without_a_network_it_says_what_is_missing(index, cache):
    index.mkdir()
    with pytest.raises(Missing, match="tool==1.0 could not be fetched: ERROR: No matching distribution"):
        packages.fetch(Needs(("tool==1.0 --hash=sha256:00",)))


def test_without_pip_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Missing, match="has no pip. Install it: .* -m ensurepip"):
        packages.fetch(Needs(("tool==1.0 --hash=sha256:00",)))


def test_a_cache_that_cannot_be_written(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    with pytest.raises(Missing, match="cannot be written: .*XDG_CACHE_HOME"):
        packages.fetch(Needs(("tool==1.0 --hash=sha256:00",)))


# ---- Debian -------------------------------------------------------------------------------------

def script(path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def debian(tmp_path, monkeypatch):
    """A machine where `there` is installed, and `tool` is not, which needs `libtool`."""
    folder = tmp_path / "debian"
    folder.mkdir()
    script(folder / "apt-get", f"""
echo "$@" >> {tmp_path}/asked
case "$*" in
*--simulate*gone*) echo 'E: Unable to locate package gone' >&2; exit 100;;
*--simulate*tool*) echo 'Inst libtool (2.0 Debian:12 [amd64])'; echo 'Inst tool [0.9] (1:1.0 Debian:12 [amd64])';;
*download*) for last; do :; done; echo x > "${{last%%=*}}.deb";;
esac""")
    script(folder / "dpkg-deb", 'mkdir -p "$3/usr/bin" "$3/usr/lib" && echo "$2" > "$3/usr/bin/$(basename "$2" .deb)"')
    script(folder / "dpkg-query", 'for last; do :; done; [ "$last" = there ] && printf "installed 3.0"')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


def test_debian_packages_are_unpacked_with_what_they_need(debian):
    made = packages.fetch(Needs(debian=("tool", "there")))
    assert made.versions == {"libtool": "2.0", "tool": "1:1.0", "there": "3.0"}
    assert {path.name for path in (made.folder / "usr/bin").iterdir()} == {"tool", "libtool"}
    asked = (debian / "asked").read_text().splitlines()
    assert "--no-install-recommends" in asked[0] and [line.split()[-1] for line in asked[1:]] == ["libtool=2.0",
                                                                                                "tool=1:1.0"]
    found = made.environment()
    assert found["PATH"].startswith(f"{made.folder}/usr/bin:") and found["LD_LIBRARY_PATH"].startswith(
        f"{made.folder}/usr/lib")


def test_what_is_installed_is_not_fetched_and_must_stay_installed(debian):
    needs = Needs(debian=("there",))
    made = packages.fetch(needs)
    assert made.versions == {"there": "3.0"} and made.environment()["PATH"] == os.environ["PATH"]
    script(debian / "debian/dpkg-query", "exit 1")
    assert packages.present(needs) is None


def test_what_is_there_by_halves_is_fetched_again(debian):
    needs = Needs(debian=("tool",))
    folder = packages.fetch(needs).folder
    (folder / packages.RECORD).write_text("{")
    (folder / "usr/bin/tool").unlink()
    assert packages.present(needs) is None
    assert (packages.fetch(needs).folder / "usr/bin/tool").exists()


def test_a_package_that_does_not_exist(debian):
    with pytest.raises(Missing, match="gone could not be fetched: E: Unable to locate package gone"):
        packages.fetch(Needs(debian=("gone",)))


def test_without_apt_the_program_is_taken_from_path_or_left_out(tmp_path, monkeypatch):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    case = Planned("x", "x", ("tool",), needs=Needs(debian=("tool",)), here=tmp_path)
    made = command.ready_case(case, {"with_": "system", "warmup": 1, "no_extras": True}, {}, tmp_path / "case", [])
    assert "there is no apt-get here" in made.failed
    script(empty / "tool", "")
    made = command.ready_case(case, {"with_": "system", "warmup": 1, "no_extras": True}, {}, tmp_path / "case", [])
    assert made.failed is None and made.command == [str(empty / "tool")]


@pytest.mark.parametrize("first, status", [("tool", 0), ("gone", 1)])
def test_fetch_goes_on_with_the_others(debian, capsys, first, status):
    file = debian / "my.toml"
    file.write_text("".join(f"[case.{name}]\ncommand = 'true'\ndebian = ['{package}']\n"
                            for name, package in (("a", first), ("b", "gone"))))
    with pytest.raises(SystemExit) as ended:
        cli.main(["suite", str(file), "--fetch"])
    said = capsys.readouterr()
    assert (ended.value.code or 0) == status and "b: left out: gone could not be fetched" in said.err
    assert ("a: there" in said.out) == (first == "tool")
