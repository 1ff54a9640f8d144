"""Prints the Python that ./dev bench and ./dev run use: an environment under build/ with what the lab needs, made anew
when that changes. The HTML report's libraries, most of the download, stay out."""

import hashlib
import pathlib
import re
import subprocess
import sys
import tomllib
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "bench-environment"
REPORTS_OWN = {"matplotlib", "jinja2"}


def needs() -> list[str]:
    project = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]
    return [need for need in project["dependencies"] if re.match(r"[\w-]+", need)[0] not in REPORTS_OWN]


def python() -> pathlib.Path:
    key = hashlib.sha256("\n".join([sys.version, *needs()]).encode()).hexdigest()
    found, stamp = ENVIRONMENT / "bin" / "python3", ENVIRONMENT / "stamp"
    if not stamp.exists() or stamp.read_text() != key:
        print("bench: making a Python environment with " + ", ".join(needs()), file=sys.stderr, flush=True)
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        subprocess.run([found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needs()], check=True,
                       stdout=sys.stderr)
        stamp.write_text(key)
    return found


if __name__ == "__main__":
    try:
        print(python())
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"bench: the Python environment could not be made: {error}")
