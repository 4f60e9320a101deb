"""Targets in a process of their own: a crash or a hang ends one check, and the rest go on.

One child runs everything and is started again only after it has ended. Messages are tuples:

==========================================  ====================================================
to the child                                from the child
==========================================  ====================================================
(when it starts)                            ("importing",), then ("ready", {label: Claims}) or
                                            ("wrong", line)
("checks", label, [(dtype, check), ...])    for each ("start",), ("asking",) before every call of
                                            the target, ("outcome", Outcome)
("call", label, pickled tensor)             ("answer", pickled Answer), or ("refused" or
                                            "malformed", line)
(anything)                                  ("interrupted",): the target raised KeyboardInterrupt;
                                            ("broken",) after an outcome: the device is of no
                                            more use to this child
==========================================  ====================================================
"""

import multiprocessing
import pickle
import signal
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from torch import Tensor

from mxref.cli.child import serve
from mxref.cli.errors import WrongCallError
from mxref.cli.options import Choice
from mxref.testing.answer import Answer
from mxref.testing.claims import Claims
from mxref.testing.judge import Judge, Refused, Wrong

STARTING = 120
"""Seconds that a start may take at least: a process, torch, and the registered kernels."""


class EndedError(Exception):
    """The child ended, or was ended for it gave no answer; the message is the reason."""


class BrokenDeviceError(Exception):
    """The child's device is of no more use to it; the next job gets a new child."""


class Child:
    """The targets of one call of the command, behind a process boundary.

    `timeout` is how long one call of a target, or its import, may take, in seconds; 0 for any time.
    """

    def __init__(self, choice: Choice, **arguments: Any) -> None:
        self._choice, self._arguments = choice, arguments
        self._process: Any = None
        self._pipe: Any = None
        self.claims: dict[str, Claims] = {}
        self.timeout = choice.timeout

    def __enter__(self) -> "Child":
        try:
            self.start()
        except EndedError as error:
            target = self._choice.target or "registered kernels"
            raise WrongCallError(f"target={target!r}: {error} while it was imported") from None
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the child and wait until it has loaded the targets."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self._choice, self._arguments))
        self._process.start()
        theirs.close()
        starting = self.timeout and max(STARTING, self.timeout)
        self.receive(starting)
        # what the call names is code of others, under the limit of the call
        named = self._choice.target is not None
        self.claims = self.receive(self.timeout if named else starting)[1]

    def stop(self) -> None:
        """End the child, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def send(self, *message: object) -> None:
        """Give the child a job; starts a child where none is."""
        if self._process is None:
            self.start()
        try:
            self._pipe.send(message)
        except OSError:
            raise EndedError(self._ended()) from None

    def receive(self, limit: float | None = None) -> tuple[Any, ...]:
        """The next message. EndedError if the child ends, or says nothing for `limit` seconds."""
        limit = self.timeout if limit is None else limit
        ready = connection.wait([self._pipe, self._process.sentinel], limit or None)
        if not ready:
            self.stop()
            raise EndedError(f"no answer within {limit:g} s")
        try:
            # what it sent before it ended comes first
            message: tuple[Any, ...] = self._pipe.recv() if self._pipe.poll() else ()
        except (EOFError, OSError):
            message = ()
        if not message:
            raise EndedError(self._ended())
        if message[0] == "broken":
            self.stop()
            raise BrokenDeviceError
        if message[0] == "interrupted":
            raise KeyboardInterrupt
        if message[0] == "wrong":
            raise WrongCallError(message[1])
        return message

    def _ended(self) -> str:
        self._process.join(5)
        code = self._process.exitcode
        self.stop()
        return f"the process ended with {exit_name(code)}"


def exit_name(code: int | None) -> str:
    """`exit code 0`, or `signal SIGABRT` for a negative code."""
    if code is None or code >= 0:
        return f"exit code {code}"
    names = {each.value: each.name for each in signal.Signals}
    return f"signal {names.get(-code, -code)}"


class RemoteJudge(Judge):
    """A judge whose target is in the child. A crash is a malformed answer."""

    def __init__(self, child: Child, label: str, claims: Claims) -> None:
        super().__init__(_elsewhere, claims)
        self._child, self._label = child, label

    def ask(self, x: Tensor) -> Answer:
        """The target's answer to x, brought here; x itself keeps its bytes."""
        try:
            self._child.send("call", self._label, pickle.dumps(x.detach().cpu().contiguous()))
            kind, content = self._child.receive()
        except EndedError as error:
            raise Wrong(str(error)) from None
        if kind == "refused":
            raise Refused(content)
        if kind == "malformed":
            raise Wrong(content)
        payload, scale = pickle.loads(content)
        return Answer(payload.to(x.device), scale.to(x.device))


def _elsewhere(x: Tensor) -> Callable[..., Any]:
    raise AssertionError("the target is in the child")
