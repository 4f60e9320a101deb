"""A call that was made before: from the request and how x lies straight to outputs and launch.

The dispatcher and every check are left out, which is most of the host time of a small tensor. So
only calls are served that would pass both unchanged: a plain tensor or parameter on the current
device, no mode that sees operators, no transformation or trace of torch under way.
"""

from typing import Any, NamedTuple

import torch

from mxkernels.quantize.plans import Buffers, Started, keep

PLAIN = (torch.Tensor, torch.nn.Parameter)
PRIVATE = (
    "_dispatch_keys",
    "_functorch",
    "_is_tracing",
    "_len_torch_dispatch_stack",
    "_len_torch_function_stack",
)
AVAILABLE = all(hasattr(torch._C, name) for name in PRIVATE)
"""Without these functions of torch every call takes the usual way."""


Place = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""Shape, strides and dtype of an output."""


class Served(NamedTuple):
    """A plan, the index of its device, its outputs, and the part of the request that is a tuple."""

    plan: Started
    device: int
    places: tuple[Place, ...]
    sizes: Any


_SERVED: dict[Any, Served] = {}

SIZES = 2
"""Where a request has its block, or the layouts of both directions."""


def index_of(x: torch.Tensor) -> int | None:
    """The index of the CUDA device that holds x; None for any other device."""
    return x.device.index if x.is_cuda else None


def current_device() -> int:
    """The index of torch's current CUDA device."""
    return int(torch._C._cuda_getDevice())


def _allocate(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(shape, strides, dtype=dtype, device="cuda")


# What inductor's code allocates with: half the time of torch.empty_strided.
_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
allocate = getattr(_guards, "_empty_strided_cuda", _allocate)


def _key(x: torch.Tensor, request: tuple[Any, ...]) -> tuple[Any, ...]:
    """The request and how x lies; the keys mark negated views and the like."""
    keys = torch._C._dispatch_keys(x).raw_repr()
    return (request, x.shape, x.stride(), x.dtype, x.device, keys, x.data_ptr() % 16)


def _eligible(x: Any) -> bool:
    return (
        AVAILABLE
        and type(x) in PLAIN
        and not torch._C._len_torch_dispatch_stack()
        and not torch._C._len_torch_function_stack()
        and not torch._C._is_tracing()
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def _same_types(given: Any, known: Any) -> bool:
    return all(type(one) is type(other) for one, other in zip(given, known, strict=True))


def served(x: Any, request: tuple[Any, ...]) -> Buffers | None:
    """The outputs of a request served before for a tensor that lies as x does, else None."""
    # Asked first: a graph that is captured must hold nothing of this table.
    if torch.compiler.is_compiling() or not _SERVED or not _eligible(x):
        return None
    try:
        found = _SERVED.get(_key(x, request))
    except TypeError:  # a request that cannot be hashed is none that was kept
        return None
    if found is None or found.device != current_device():
        return None
    # (1.0, 32) is found as (1, 32) and is no block; the same object again, as a rule, costs nothing
    if request[SIZES] is not found.sizes and not _same_types(request[SIZES], found.sizes):
        return None
    outputs = tuple([allocate(*place) for place in found.places])
    found.plan.start(x, outputs)
    return outputs


def remember(x: torch.Tensor, request: tuple[Any, ...], plan: Started, outputs: Buffers) -> None:
    """Serve this request by the plan from now on, for tensors that lie as x does."""
    places = tuple((tuple(each.shape), each.stride(), each.dtype) for each in outputs)
    index = index_of(x)
    if index is not None:
        keep(_SERVED, _key(x, request), Served(plan, index, places, request[SIZES]))


def remember_as(x: Any, request: tuple[Any, ...], known: tuple[Any, ...]) -> None:
    """Serve `request` as `known` from now on, where that one is served."""
    if can_remember(x, request):
        found = _SERVED.get(_key(x, known))
        if found is not None:
            keep(_SERVED, _key(x, request), found._replace(sizes=request[SIZES]))


def can_remember(x: Any, request: tuple[Any, ...]) -> bool:
    """Whether `remember` may be called: a non-empty CUDA tensor and a request of exact types."""
    if torch.compiler.is_compiling() or not _eligible(x) or index_of(x) is None or not x.numel():
        return False
    return all(isinstance(part, str | tuple | None) for part in request)
