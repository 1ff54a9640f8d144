#!/usr/bin/env python3
"""Makes a prefix for wine.c and starts its server: wine_prefix.py FOLDER HALF LOADER SERVER STAMP

Without a stamp the prefix is there and only its server is started. The environment is the prefix's."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

import fetch_windows

IDLE_SECONDS = 900
SETUP_SECONDS = 300
SHIM = pathlib.Path(__file__).resolve().parent / "bcryptprimitives.c"

# What a prefix is told once, as (key, value, data). No debugger: a crash is an exit status, not a dialogue.
REGISTRY = [
    (r"HKCU\Software\Wine", "Version", "win10"),
    (r"HKCU\Software\Wine\DllOverrides", "winedbg.exe", ""),
    (r"HKCU\Software\Wine\DllOverrides", "winemenubuilder.exe", ""),
    (r"HKCU\Software\Wine\WineDbg", "ShowCrashDialog", "0"),
]
WITHOUT_STREAMS = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Failure(Exception):
    pass


@dataclasses.dataclass
class Prefix:
    folder: str
    half: str  # the folder of Wine's half for 32-bit programs; else empty
    loader: str
    server: str


def make(prefix: Prefix, stamp: str) -> None:
    if prefix.half:
        fetch_windows.fetch(os.path.basename(prefix.half))
    stop(prefix)
    shutil.rmtree(prefix.folder, ignore_errors=True)
    os.mkdir(prefix.folder)
    serve(prefix)
    for key, value, data in REGISTRY:
        run_quiet(prefix, "reg", "add", key, "/v", value, "/t", "REG_SZ", "/d", data, "/f")
    windows = pathlib.Path(prefix.folder, "drive_c", "windows")
    build_shim("x86_64", windows / "system32")
    if prefix.half:
        build_shim("i686", windows / "syswow64")
    pathlib.Path(prefix.folder, "reheap.stamp").write_text(stamp)


def serve(prefix: Prefix) -> None:
    """Starts the server, and the services with it: they would keep a program's pipes open for ever."""
    subprocess.run([prefix.server, f"-p{IDLE_SECONDS}"], timeout=SETUP_SECONDS, start_new_session=True,
                   **WITHOUT_STREAMS)
    run_quiet(prefix, "wineboot", "--init")


def run_quiet(prefix: Prefix, *command: str) -> None:
    overrides = {"WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe="}
    try:
        status = subprocess.run([prefix.loader, *command], env=os.environ | overrides, timeout=SETUP_SECONDS,
                                start_new_session=True, **WITHOUT_STREAMS).returncode
    except subprocess.TimeoutExpired:
        stop(prefix)
        raise Failure(f"{' '.join(command)} did not end within {SETUP_SECONDS} s") from None
    if status != 0:
        raise Failure(f"{' '.join(command)} ended with status {status}")


def stop(prefix: Prefix) -> None:
    if os.path.exists(prefix.folder):
        subprocess.run([prefix.server, "-k"], timeout=60, **WITHOUT_STREAMS)


def build_shim(processor: str, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entry = "DllMain" if processor == "x86_64" else "_DllMain@12"
    subprocess.run([f"{processor}-w64-mingw32-gcc", "-O2", "-shared", "-nostdlib", f"-Wl,-e,{entry}",
                    "-Wl,--kill-at", SHIM, "-o", folder / "bcryptprimitives.dll", "-ladvapi32"], check=True)


def main() -> int:
    *places, stamp = sys.argv[1:]
    prefix = Prefix(*places)
    try:
        make(prefix, stamp) if stamp else serve(prefix)
    except (Failure, fetch_windows.Failure, subprocess.SubprocessError, OSError) as failure:
        print(f"wine: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
