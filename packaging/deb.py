"""Debian's packages, made by Debian's own tools out of packaging/debian."""

import datetime
import email.utils
import os
import pathlib
import re
import shutil

from release import ROOT, PackagingError, built, copy_sources, empty, epoch, run, version

TOOLS = {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "help2man": "help2man"}


def make(out: pathlib.Path, work: pathlib.Path, build: pathlib.Path | None) -> list[pathlib.Path]:
    """What is compiled in `build` is packed; with None it is compiled first."""
    if missing := [package for tool, package in TOOLS.items() if not shutil.which(tool)]:
        raise PackagingError(f"Debian's packages need {', '.join(missing)}: apt-get install {' '.join(missing)}")
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
    if build:
        products = ("lib/libreheap.so", "lib/libreheap-hardened.so", "bin/reheap")
        environment["REHEAP_BUILD"] = str(built(build, *products).resolve())
    sources = copy_sources(empty(work) / f"reheap-{version()}")
    shutil.move(sources / "packaging/debian", sources / "debian")
    (sources / "debian/changelog").write_text(changelog())
    run("dpkg-buildpackage", "--build=binary", "--no-sign", log=work / "log", cwd=sources, env=environment)
    return [pathlib.Path(shutil.copy(package, out)) for package in sorted(work.glob("*.deb"))]


def changelog() -> str:
    maintainer = re.search("^Maintainer: (.+)$", (ROOT / "packaging/debian/control").read_text(), re.M)[1]
    moment = email.utils.format_datetime(datetime.datetime.fromtimestamp(epoch(), datetime.timezone.utc))
    return (f"reheap ({version()}) unstable; urgency=medium\n\n"
            f"  * Version {version()}.\n\n"
            f" -- {maintainer}  {moment}\n")
