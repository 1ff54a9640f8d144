"""Makes a prefix for wine.py, and starts its server."""

import os
import pathlib
import shutil
import subprocess

import fetch_windows

IDLE_SECONDS = 900
SETUP_SECONDS = 300
WITHOUT_STREAMS = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def make(prefix, registry: list[tuple[str, str, str]], shim: str) -> None:
    try:
        if prefix.half:
            fetch_windows.fetch(os.path.basename(prefix.half))
        stop(prefix)
        shutil.rmtree(prefix.folder, ignore_errors=True)
        os.mkdir(prefix.folder)
        serve(prefix)
        for key, value, data in registry:
            run_quiet(prefix, "reg", "add", key, "/v", value, "/t", "REG_SZ", "/d", data, "/f")
        windows = pathlib.Path(prefix.folder, "drive_c", "windows")
        build_shim(shim, "x86_64", windows / "system32")
        if prefix.half:
            build_shim(shim, "i686", windows / "syswow64")
    except (fetch_windows.Failure, subprocess.SubprocessError) as failure:
        raise OSError(str(failure)) from None


def serve(prefix) -> None:
    """Starts the server, and the services with it: they would keep a program's pipes open for ever."""
    subprocess.run([prefix.server, f"-p{IDLE_SECONDS}"], env=prefix.environment(), timeout=SETUP_SECONDS,
                   start_new_session=True, **WITHOUT_STREAMS)
    run_quiet(prefix, "wineboot", "--init")


def run_quiet(prefix, *command: str) -> None:
    overrides = {"WINEDLLOVERRIDES": "mscoree,mshtml,winemenubuilder.exe="}
    try:
        status = subprocess.run([prefix.loader, *command], env={**prefix.environment(), **overrides},
                                timeout=SETUP_SECONDS, start_new_session=True, **WITHOUT_STREAMS).returncode
    except subprocess.TimeoutExpired:
        stop(prefix)
        raise OSError(f"{' '.join(command)} did not end within {SETUP_SECONDS} s") from None
    if status != 0:
        raise OSError(f"{' '.join(command)} ended with status {status}")


def stop(prefix) -> None:
    if os.path.exists(prefix.folder):
        subprocess.run([prefix.server, "-k"], env=prefix.environment(), timeout=60, **WITHOUT_STREAMS)


def build_shim(source: str, processor: str, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entry = "DllMain" if processor == "x86_64" else "_DllMain@12"
    subprocess.run([f"{processor}-w64-mingw32-gcc", "-O2", "-shared", "-nostdlib", f"-Wl,-e,{entry}",
                    "-Wl,--kill-at", source, "-o", folder / "bcryptprimitives.dll", "-ladvapi32"], check=True)
