"""The process that runs targets: whatever one does to its process, the command survives it.

Started by `mxref.cli.supervisor`, which says what each message means.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from mxref.cli import subjects
from mxref.cli.errors import WrongCallError
from mxref.cli.options import Choice
from mxref.cli.subjects import Subject
from mxref.testing import ptxas
from mxref.testing.check import Setting
from mxref.testing.checks import CHECKS
from mxref.testing.judge import Judge, Refused, Wrong
from mxref.testing.run import Run


def serve(connection: Connection, choice: Choice, arguments: dict[str, Any]) -> None:
    """Load the targets of a call, then run the jobs that arrive until the pipe is closed.

    `arguments` are those of `subjects.kernels`; a named target takes none.
    """
    # Control-C reaches the whole group: the parent decides, and ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ptxas.pin()  # a verdict must not depend on which target ran before
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        connection.send(("importing",))
        found = _subjects(choice, arguments)
        connection.send(("ready", {each.label: each.claims for each in found}))
        known = {each.label: each for each in found}
        while True:
            kind, label, content = connection.recv()
            _JOBS[kind](connection, known[label], content)
    except WrongCallError as error:
        connection.send(("wrong", str(error)))
    except KeyboardInterrupt:  # raised by a target
        connection.send(("interrupted",))
    except (EOFError, BrokenPipeError):
        return


def _end_with_parent() -> None:
    """A parent that is killed cannot end this process, and a target may run forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _subjects(choice: Choice, arguments: dict[str, Any]) -> list[Subject]:
    if choice.target is None:
        return subjects.kernels(choice, **arguments)[0]
    return [subjects.named(choice, choice.target)]


def _checks(connection: Connection, subject: Subject, items: list[tuple[torch.dtype, str]]) -> None:
    """Run checks in their order, and tell of each when it starts and what it came to."""
    checks = {check.name: check for check in CHECKS}
    run = Run(
        subject.fn, subject.claims, subject.label, (), asking=lambda: connection.send(("asking",))
    )
    for dtype, name in items:
        connection.send(("start",))
        outcome = run.outcome(checks[name], Setting(subject.claims, dtype))
        connection.send(("outcome", outcome))
        if outcome.failure is not None and is_broken(subject.claims.device):
            connection.send(("broken",))
            raise EOFError


def is_broken(device: torch.device) -> bool:
    """Whether an earlier error, an illegal address for example, has made the device useless here.

    Every later call of this process would fail, whatever it does.
    """
    if device.type != "cuda":
        return False
    try:
        torch.cuda.synchronize(device)
        torch.zeros(1, device=device).item()
    except RuntimeError:
        return True
    return False


def _call(connection: Connection, subject: Subject, content: bytes) -> None:
    """The answer to one tensor, as bytes."""
    x = pickle.loads(content).to(subject.claims.device)
    try:
        answer = Judge(subject.fn, subject.claims).ask(x)
    except (Refused, Wrong) as error:
        connection.send(("refused" if isinstance(error, Refused) else "malformed", str(error)))
        return
    parts = tuple(part.cpu().contiguous() for part in answer)
    # plain pickle: the connection's own would share memory, by file descriptors that can run out
    connection.send(("answer", pickle.dumps(parts)))


_JOBS: dict[str, Callable[[Connection, Subject, Any], None]] = {"checks": _checks, "call": _call}
