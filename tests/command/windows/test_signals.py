"""Ctrl-C at a console goes to the program, and the launcher waits for what that makes of it. CMakeLists.txt sets
the REHEAP_TEST_… variables."""

import os
import pathlib
import pty
import re
import select
import time
import unittest

WINE = pathlib.Path(__file__).resolve().parents[3] / "tools" / "wine"
LAUNCHER = os.environ["REHEAP_TEST_LAUNCHER"]
PROGRAMS = os.environ["REHEAP_TEST_PROGRAMS"]
SIGNALS = f"{PROGRAMS}/signals.exe"
PATIENCE = 40
CONTROL_C = b"\x03"


def read_some(terminal: int) -> bytes:
    """What came within a moment; nothing at the end too."""
    if not select.select([terminal], [], [], 0.2)[0]:
        return b""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def letters(screen: bytes) -> bytes:
    """Without the console's control sequences."""
    return re.sub(rb"\x1b\[[?\d]*[A-Za-z]", b"", screen)


def after_control_c(*command: str) -> tuple[int, bytes]:
    """Its exit status, and what stood on its screen."""
    # Without the runner between: Wine's console has to be the terminal's own.
    child, terminal = pty.fork()
    if child == 0:
        os.execv(WINE, [WINE, "--become", *command])
    screen, press, end = b"", 0.0, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        screen += read_some(terminal)
        # Again and again: a console that is just being set up drops what was typed.
        if b"ready" in letters(screen) and time.monotonic() > press:
            os.write(terminal, CONTROL_C)
            press = time.monotonic() + 1
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            screen += read_some(terminal)
            os.close(terminal)
            return os.waitstatus_to_exitcode(status), letters(screen)
    os.close(terminal)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError(f"did not end; on its screen: {letters(screen)}")


class Signals(unittest.TestCase):
    def test_a_plain_program_ends_by_its_handler(self):
        status, screen = after_control_c(SIGNALS)
        self.assertEqual(status, 77, screen)

    def test_a_launched_one_does_too(self):
        status, screen = after_control_c(LAUNCHER, "run", "--require", "--", SIGNALS)
        self.assertEqual(status, 77, screen)

    def test_a_starter_that_does_not_care_ends_before_it(self):
        """The control: without a handler of its own the launcher would be ended by the signal."""
        status, screen = after_control_c(f"{PROGRAMS}/starter.exe", "wide", SIGNALS)
        self.assertNotEqual(status, 77, screen)


if __name__ == "__main__":
    unittest.main()
