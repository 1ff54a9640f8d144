"""The one error a user is meant to read: what went wrong, and what fixes it."""

import os
import shutil
import sys


class BenchError(Exception):
    pass


def need_tool(program: str, debian_package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise BenchError(f"{program} is not installed; install it: apt-get install {debian_package}")
    return path


def run_main(main) -> None:
    """Runs `main`, turning a BenchError into one line on stderr and exit status 1."""
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output has seen enough; say nothing more, not even when Python flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        sys.exit(130)
