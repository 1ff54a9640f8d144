"""Errors that a user is meant to read: the lab's, and those of the project's tools."""

import os
import sys

from registries import Failure
from reheap_lab.errors import LabError

ERRORS = (LabError, Failure)


def run_main(main) -> None:
    """Runs `main`, turning an error into one line on stderr."""
    try:
        sys.exit(main())
    except ERRORS as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output has seen enough; say nothing more, not even when Python flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        sys.exit(130)
