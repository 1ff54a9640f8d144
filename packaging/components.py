"""What is linked into reheap's command besides reheap's own code. The libraries hold nothing else."""

import dataclasses
import functools
import pathlib
import subprocess
import sys

from release import ROOT, PackagingError, output

GCC_RUNTIME = "GPL-3.0-or-later WITH GCC-exception-3.1"
DEBIANS = pathlib.Path("/usr/share/doc")


@dataclasses.dataclass(frozen=True)
class Component:
    name: str
    licence: str  # in SPDX's words
    package: str  # the Debian package it comes from

    def version(self) -> str:
        try:
            return output("dpkg-query", "-W", "-f", "${source:Upstream-Version}", self.package)
        except (OSError, subprocess.CalledProcessError) as error:
            raise PackagingError(f"{self.name} has no version here: apt-get install {self.package}") from error

    def notice(self) -> pathlib.Path:
        """Its licence in full."""
        notice = DEBIANS / self.package / "copyright"
        if not notice.is_file():
            raise PackagingError(f"the licence of {self.name}, {notice}, is missing: apt-get install {self.package}")
        return notice.resolve()


class OfZig(Component):
    """From Zig's own folder: `package` is where its licence lies there."""

    def version(self) -> str:
        return "from Zig " + output(zig() / "zig", "version").strip()

    def notice(self) -> pathlib.Path:
        return zig() / self.package


@functools.cache
def zig() -> pathlib.Path:
    return pathlib.Path(output(sys.executable, "-B", ROOT / "tools/fetch_windows.py", "zig").strip())


HEADERS = (Component("CLI11", "BSD-3-Clause", "libcli11-dev"),
           Component("nlohmann-json", "MIT", "nlohmann-json3-dev"))
LIBCXX = OfZig("libc++", "Apache-2.0 WITH LLVM-exception", "lib/libcxx/LICENSE.TXT")


def linux(command: pathlib.Path) -> tuple[Component, ...]:
    """Of a command, by what it says of itself: Zig links another C library than GCC."""
    if b"ld-musl-" in command.read_bytes():
        return (*HEADERS, OfZig("musl", "MIT", "lib/libc/musl/COPYRIGHT"), LIBCXX)
    gcc = output("gcc", "-dumpversion").split(".")[0].strip()
    return (*HEADERS, Component("glibc", "LGPL-2.1-or-later", "libc6-dev"),
            Component("gcc-runtime", GCC_RUNTIME, f"gcc-{gcc}-base"))


def windows() -> tuple[Component, ...]:
    """Of the command, which Zig makes, and of what GCC makes for the lab and for 32 bits."""
    return (*HEADERS, Component("mingw-w64-runtime", "ZPL-2.1", "mingw-w64-common"),
            Component("gcc-runtime", GCC_RUNTIME, "gcc-mingw-w64-base"), LIBCXX)
