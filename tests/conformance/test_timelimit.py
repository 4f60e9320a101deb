"""The time limit inside pytest: it ends Python code, and leaves the timer as it was."""

import os
import signal
import threading
import time

import pytest

from mxref.testing.timelimit import OutOfTimeError, time_limit


def test_a_time_limit_gives_the_timer_back() -> None:
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 100)
        with pytest.raises(OutOfTimeError, match=r"no answer within 0.05 s"), time_limit(0.05):
            time.sleep(60)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 100
        os.kill(os.getpid(), signal.SIGALRM)
        assert rang == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_outside_of_the_main_thread_there_is_no_limit() -> None:
    done = []

    def work() -> None:
        with time_limit(0.01):
            time.sleep(0.05)
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
