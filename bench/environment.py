"""Prints the Python that ./dev bench and ./dev run use: an environment under build/ with what the lab needs, made anew
when that changes. The HTML report's libraries, most of the download, stay out until a benchmark draws."""

import hashlib
import importlib.util
import pathlib
import re
import subprocess
import sys
import tomllib
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "build" / "bench-environment"
REPORTS_OWN = {"matplotlib", "jinja2"}


def _all_needs() -> dict[str, str]:
    """The lab's, by name, each with the versions that will do."""
    project = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]
    extra = (need.partition(";")[0] for need in project["optional-dependencies"]["lab"])  # this Python is new enough
    return {re.match(r"[\w-]+", need)[0]: need for need in extra}


def needs() -> list[str]:
    return [need for name, need in _all_needs().items() if name not in REPORTS_OWN]


def _install(interpreter: pathlib.Path | str, wanted: list[str]) -> None:
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True,
                   stdout=sys.stderr)


def install_reports_own() -> None:
    """What draws, for the Python that runs, unless it has it."""
    wanted = [_all_needs()[name] for name in sorted(REPORTS_OWN) if importlib.util.find_spec(name) is None]
    if wanted:
        print("bench: installing " + ", ".join(wanted), file=sys.stderr, flush=True)
        _install(sys.executable, wanted)
        importlib.invalidate_caches()


def python() -> pathlib.Path:
    key = hashlib.sha256("\n".join([sys.version, *needs()]).encode()).hexdigest()
    found, stamp = ENVIRONMENT / "bin" / "python3", ENVIRONMENT / "stamp"
    if not stamp.exists() or stamp.read_text() != key:
        print("bench: making a Python environment with " + ", ".join(needs()), file=sys.stderr, flush=True)
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        _install(found, needs())
        stamp.write_text(key)
    return found


if __name__ == "__main__":
    try:
        print(python())
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"bench: the Python environment could not be made: {error}")
