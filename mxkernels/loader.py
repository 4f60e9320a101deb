"""Loads every kernel module twice: once for Triton's compiler, once for its interpreter.

Triton decides when a function is decorated whether it will be compiled or interpreted, for good.
Two copies of a module serve CPU and CUDA tensors in one process with no environment variable. A
copy lives below an alias package whose path is this folder, so its relative imports (the device
functions) find the copy of their own kind.
"""

import functools
import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import torch

from mxkernels import arch

_ALIASES = {True: "mxkernels._interpreted", False: "mxkernels._native"}


def kernels(name: str, *, interpret: bool) -> ModuleType:
    """The copy of kernel module `mxkernels.<name>` that is interpreted, or the compiled one.

    Raises RuntimeError naming the extra where Triton, or numpy for the interpreter, is missing.

    >>> kernels("device", interpret=True).__name__
    'mxkernels._interpreted.device'
    """
    return _load(name, bool(interpret))


@functools.cache
def _load(name: str, interpret: bool) -> ModuleType:
    lacking = arch.triton_missing(interpret=interpret)
    if lacking:
        raise RuntimeError(lacking)
    import triton

    alias = _ALIASES[interpret]
    if alias not in sys.modules:
        package = ModuleType(alias, f"mxkernels once more, interpret={interpret}")
        package.__path__ = importlib.import_module("mxkernels").__path__
        sys.modules[alias] = package
    with triton.knobs.runtime.scope():
        triton.knobs.runtime.interpret = interpret
        return importlib.import_module(f"{alias}.{name}")


_INTERPRETER = threading.Lock()


@contextmanager
def interpreting() -> Iterator[None]:
    """Held while the interpreter runs: one thread at a time, subnormals kept.

    The interpreter patches triton.language for the length of a launch. It computes with numpy in
    the calling thread, which obeys torch.set_flush_denormal; a GPU does not, so it is switched
    off and restored.
    """
    with _INTERPRETER:
        smallest = torch.full((1,), 1, dtype=torch.int32).view(torch.float32)
        flushed = bool((smallest * 2.0**126 == 0).item())
        if flushed:
            torch.set_flush_denormal(False)
        try:
            yield
        finally:
            if flushed:
                torch.set_flush_denormal(True)
