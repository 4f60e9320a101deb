"""A time limit on Python code of the main thread, by a timer signal of the operating system."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfTimeError(BaseException):
    """The limit has passed. No Exception: a target's `except Exception` does not stop it."""


def can_limit() -> bool:
    """Whether a limit can be set here: the main thread, on a system with interval timers."""
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the code under `with` after some seconds; 0 sets no limit.

    It interrupts Python code and calls that give way to signals (sleep, locks, I/O). It cannot end
    code that never returns to Python: a loop in C or on a GPU, which keeps its thread. Another user
    of the same timer gets it back. Without effect where `can_limit` is False.

    >>> with time_limit(0.01):
    ...     while True:
    ...         pass
    Traceback (most recent call last):
    mxref.testing.timelimit.OutOfTimeError: no answer within 0.01 s
    """
    if not seconds or not can_limit():
        yield
        return

    def expire(signum: int, frame: object) -> None:
        raise OutOfTimeError(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)
