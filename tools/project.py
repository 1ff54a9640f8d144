"""The project's files: what git tracks or would track; without git, all but build/."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def files(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Paths relative to root, sorted; files deleted but still in git's index are left out."""
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"],
            check=True, stdout=subprocess.PIPE, text=True).stdout
        found = {pathlib.Path(name) for name in listed.split("\0") if name}
    else:
        found = set(_walk(root))
    return sorted(path for path in found if (root / path).is_file())


def _walk(root: pathlib.Path):
    for folder, folders, names in os.walk(root):
        here = pathlib.Path(folder).relative_to(root)
        skipped = {"__pycache__"} | ({"build"} if here == pathlib.Path() else set())
        folders[:] = [name for name in folders if name not in skipped]
        yield from (here / name for name in names)
