#!/usr/bin/env python3
"""Makes the site of docs/ in build/site: ./dev docs. What it is made with comes by pip into an environment under
build/, made anew when docs/requirements.txt changes."""

import argparse
import functools
import hashlib
import http.server
import os
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REQUIREMENTS = ROOT / "docs" / "requirements.txt"
ENVIRONMENT = ROOT / "build" / "docs-environment"
SITE = ROOT / "build" / "site"


def python() -> pathlib.Path:
    """The Python that has what docs/requirements.txt names."""
    key = hashlib.sha256(sys.version.encode() + REQUIREMENTS.read_bytes()).hexdigest()
    found, stamp = ENVIRONMENT / "bin" / "python3", ENVIRONMENT / "stamp"
    if not stamp.exists() or stamp.read_text() != key:
        print("docs: making a Python environment with what docs/requirements.txt names", file=sys.stderr, flush=True)
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        subprocess.run([found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS],
                       check=True, stdout=sys.stderr)
        stamp.write_text(key)
    return found


def build(site: pathlib.Path, config: pathlib.Path = HERE / "mkdocs.yml") -> None:
    """Raises CalledProcessError when a link or a heading that one leads to is missing, or a page is in no menu."""
    # The notice is about a later mkdocs than the one that is pinned.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python(), "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", config, "--site-dir", site]
    subprocess.run(command, check=True, env=environment)


def serve(port: int) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"docs: http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev docs", description="Makes the site of docs/ in build/site.")
    parser.add_argument("--serve", nargs="?", const=8000, type=int, metavar="PORT",
                        help="then show it to this machine's browsers (8000; 0: any free port)")
    options = parser.parse_args()
    try:
        build(SITE)
        print(f"docs: {SITE / 'index.html'}; search needs a server: ./dev docs --serve")
        if options.serve is not None:
            serve(options.serve)
    except subprocess.CalledProcessError:
        print("docs: the site could not be made; what is said above has to be mended", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
