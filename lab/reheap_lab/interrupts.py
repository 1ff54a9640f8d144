"""Ctrl-C and its kin. They end what is being measured, and never what is made of it: what was measured is not lost for
one that comes while it is judged or written.

Signals raise KeyboardInterrupt, but are held within `held`, save for what is `open` in it.
"""

import contextlib
import os
import signal
from collections.abc import Iterator

FREE, OPEN, HELD = "free", "open", "held"
_state = FREE
_pending = False


def heed() -> None:
    """What whoever started us has had ignored (nohup) stays so."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)  # Windows has not the last two
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _came)


def _came(*_: object) -> None:
    global _state, _pending
    if _state == HELD:
        _pending = True
        with contextlib.suppress(OSError):
            os.write(2, b"reheap: what was measured is being told; that comes first\n")
        return
    _state = HELD if _state == OPEN else FREE
    raise KeyboardInterrupt


@contextlib.contextmanager
def held() -> Iterator[None]:
    global _state, _pending
    before, _state = _state, HELD
    try:
        yield
    finally:
        _pending = _pending and before != FREE  # all is told: there is nothing left to end
        _state = before


@contextlib.contextmanager
def open_to_them() -> Iterator[None]:
    """Within `held`. One that came before ends this at once."""
    global _state, _pending
    before = _state
    if _pending:
        _pending = False
        raise KeyboardInterrupt
    try:
        _state = OPEN if before == HELD else before
        yield
    finally:
        _state = before
