"""reheap, a drop-in memory allocator, and where its parts lie.

    LD_PRELOAD="$(python3 -c 'import reheap; print(reheap.library())')" ./program

`python3 -m reheap` is the command. This package needs nothing but Python; `reheap_lab`, which compares allocators,
needs what pip install 'reheap[lab]' brings.
"""

import os

__version__ = "0.1.0"

VARIABLE = "REHEAP_LAB_NATIVE"  # names a folder with bin/ and lib/ that stand for this package's

_WINDOWS = os.name == "nt"
_REINSTALL = "install it again: pip install --force-reinstall reheap"


def folder() -> str:
    """The folder whose bin/ and lib/ hold what is not Python's: this package, or what $REHEAP_LAB_NATIVE names."""
    return os.path.abspath(os.environ.get(VARIABLE) or os.path.dirname(__file__))


def library(hardened: bool = False) -> str:
    """The absolute path of the library: what LD_PRELOAD takes, or ctypes.CDLL; on Windows the 64-bit DLL. With
    `hardened` the build that looks for misuse of memory. FileNotFoundError where it is not installed."""
    name = "reheap-hardened" if hardened else "reheap"
    path = os.path.join(folder(), *(("bin", name + ".dll") if _WINDOWS else ("lib", "lib{}.so".format(name))))
    if not os.path.isfile(path):
        raise FileNotFoundError("{} is missing: {}".format(path, _REINSTALL))
    return path


def command() -> str:
    """The absolute path of the native `reheap`, which starts without Python. FileNotFoundError where it is not
    installed."""
    name = "reheap.exe" if _WINDOWS else "reheap"
    # On Windows all is in the package: what lies among the scripts there, or on PATH, would start Python again.
    elsewhere = [] if _WINDOWS else _script_folders() + os.get_exec_path()
    places = [os.path.join(folder(), "bin")] + elsewhere
    for path in (os.path.join(place, name) for place in places):
        if os.path.isfile(path) and not _is_script(path):
            return os.path.abspath(path)
    raise FileNotFoundError("the native reheap command is not installed; {}, or build it (./dev build) and let {} name "
                            "build/release".format(_REINSTALL, VARIABLE))


def _script_folders() -> list:
    """Where pip puts commands, seen from here: from PREFIX/lib/pythonX.Y/site-packages/reheap, or TARGET/reheap."""
    found, place = [], os.path.dirname(os.path.abspath(__file__))
    for _ in range(4):
        place = os.path.dirname(place)
        found.append(os.path.join(place, "bin"))
    return found


def _is_script(path: str) -> bool:
    """What an installation from source leaves under that name is a script in Python."""
    with open(path, "rb") as file:
        return file.read(2) == b"#!"
