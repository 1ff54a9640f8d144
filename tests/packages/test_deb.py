"""Debian's packages: to its policy, and of use in an empty root, each with what it depends on alone."""

import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = pathlib.Path(os.environ.get("REHEAP_BUILDS", ROOT / "build"))
CONSUMER = ROOT / "integrations/consumer/consumer.c"


def run(*words, **settings) -> str:
    with tempfile.TemporaryDirectory() as home:  # nobody's settings
        environment = {"PATH": os.environ["PATH"], "HOME": home} | settings.pop("env", {})
        done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env=environment, **settings)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> dict[str, pathlib.Path]:
    out = tmp_path_factory.mktemp("the packages")
    run(sys.executable, "-B", ROOT / "packaging/package.py", "deb", "--builds", BUILDS, "--out", out)
    return {file.name.split("_")[0]: file for file in out.glob("*.deb")}


@pytest.fixture
def install(packages, tmp_path):
    """Unpacks packages by name into a root; gives that root's usr."""
    def into_root(*names: str) -> pathlib.Path:
        for name in names:
            run("dpkg-deb", "--extract", packages[name], tmp_path / "root")
        return tmp_path / "root/usr"
    return into_root


def library_folder(usr: pathlib.Path) -> pathlib.Path:
    return next((usr / "lib").glob("*-linux-gnu*"))


def field(package: pathlib.Path, name: str) -> str:
    return run("dpkg-deb", "--field", package, name).strip()


def test_they_keep_to_the_policy(packages):
    run("lintian", "--fail-on", "warning", "--allow-root", "--no-cfg", *packages.values())


def test_their_files_are_all_of_the_releases_time(packages):
    """Whenever the sources were checked out: packages of one commit are the same."""
    for package in packages.values():
        packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            assert len({member.mtime for member in archive}) == 1, package.name


def test_each_depends_on_its_own_version(packages):
    version = field(packages["libreheap0"], "Version")
    for name in ("reheap", "libreheap-dev"):
        assert f"libreheap0 (= {version})" in field(packages[name], "Depends")
    assert field(packages["libreheap0"], "Multi-Arch") == "same"


def test_the_command_finds_the_library_without_the_headers(install):
    usr = install("libreheap0", "reheap")
    assert not list(usr.rglob("*.so"))
    for words, name in (([], "libreheap.so"), (["--hardened"], "libreheap-hardened.so")):
        found = json.loads(run(usr / "bin/reheap", "doctor", "--json", *words))
        assert found["report"]["overridden"] and pathlib.Path(found["report"]["library"]).is_relative_to(usr)
        assert pathlib.Path(found["report"]["library"]).name.startswith(name)
        assert "reheap" in run(usr / "bin/reheap", "run", "--require", "--verbose", *words, "--", "true")


def test_pages_tell_what_the_help_tells(install):
    pages = install("reheap") / "share/man/man1"
    assert {page.name for page in pages.iterdir()} >= {"reheap.1.gz", "reheap-run.1.gz", "reheap-doctor.1.gz"}
    help_text = run(pages.parents[2] / "bin/reheap", "run", "--help")
    text = run("zcat", pages / "reheap-run.1.gz").replace("\\-", "-")
    options = re.findall(r"^ +(?:-\w,)?(--[\w-]+)", help_text, re.M)
    assert "--require" in options and [option for option in options if option not in text] == []


def test_pkg_config(install, tmp_path):
    libraries = library_folder(install("libreheap0", "libreheap-dev"))
    words = run("pkg-config", "--cflags", "--libs", "reheap", env={"PKG_CONFIG_LIBDIR": str(libraries / "pkgconfig")})
    program = tmp_path / "program"
    run("cc", "-pthread", CONSUMER, "-o", program, *words.split())
    assert "[libreheap.so.0]" in run("readelf", "-d", program)
    run(program, "serves", env={"LD_LIBRARY_PATH": str(libraries)})


def test_cmake(install, tmp_path):
    usr = install("libreheap0", "libreheap-dev")
    run("cmake", "-G", "Ninja", "-S", ROOT / "integrations/cmake/consumer", "-B", tmp_path / "built", "-DLANGUAGE=C",
        f"-DCMAKE_PREFIX_PATH={usr}")
    run("cmake", "--build", tmp_path / "built", "--target", "with_reheap", "with_static")
    for name in ("with_reheap", "with_static"):
        run(tmp_path / "built" / name, "serves")


def test_what_is_not_built_is_said(tmp_path):
    done = subprocess.run([sys.executable, "-B", ROOT / "packaging/package.py", "deb", "--builds", tmp_path, "--out",
                           tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "./dev build release" in done.stderr and "Traceback" not in done.stderr
