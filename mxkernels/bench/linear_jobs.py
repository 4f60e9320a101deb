"""What the family `linear` times: layers forward and backward, their products and casts, matmuls.

A product is judged by `mxref.matmul` on rows and columns chosen at random, before it is timed; what
is compared to the byte afterwards is the same call once more.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import mxref
from mxkernels.bench.jobs import Job, Pool, cache_bytes, sets_for
from mxkernels.linear import CastConfig, cast, mx_linear
from mxkernels.matmul import op
from mxref import Quantized

SAMPLED = 48
"""Rows and columns of a product that are judged."""

Layer = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Item = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def inputs(size: int, device: torch.device) -> Pool:
    """Sets of x, weight and grad, each (size, size) bf16, that together exceed the L2."""
    count = sets_for(6 * size * size, cache_bytes(device))
    generator = torch.Generator(device).manual_seed(4)

    def one(grad: bool) -> torch.Tensor:
        x = torch.randn(size, size, device=device, generator=generator).to(torch.bfloat16)
        return x.requires_grad_(grad)

    return Pool([(one(True), one(True), one(False)) for _ in range(count)])


def layers(config: CastConfig) -> dict[str, Layer]:
    """The layers by name: bf16 and MX, alone and followed by a sigmoid."""

    def mx(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return mx_linear(x, weight, config=config)

    def bf16_sigmoid(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(functional.linear(x, weight))

    def mx_sigmoid(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(mx(x, weight))

    return {
        "bf16 linear": functional.linear,
        "mx linear": mx,
        "bf16 linear+sigmoid": bf16_sigmoid,
        "mx linear+sigmoid": mx_sigmoid,
    }


def step(layer: Layer) -> Callable[[Item], tuple[torch.Tensor, ...]]:
    """Forward and backward of a layer: y, dx, dweight."""

    def run(item: Item) -> tuple[torch.Tensor, ...]:
        x, weight, grad = item
        y = layer(x, weight)
        return (y.detach(), *torch.autograd.grad(y, (x, weight), grad))

    return run


def three_products(item: Item) -> tuple[torch.Tensor, ...]:
    """The bf16 products of a layer, nothing else."""
    x, weight, grad = (part.detach() for part in item)
    return x @ weight.mT, grad @ weight, grad.mT @ x


def three_casts(config: CastConfig) -> Callable[[Item], tuple[Any, ...]]:
    """The casts of a layer, nothing else: both directions of each of its three tensors."""

    def run(item: Item) -> tuple[Any, ...]:
        return tuple(cast.both(part.detach(), config) for part in item)

    return run


def cast_bytes(size: int) -> int:
    """What these casts read and write: 2 + 2 bytes an element, and two scales of 32.

    >>> cast_bytes(32)
    12480
    """
    return 3 * (4 * size * size + 2 * (size * size // 32))


def judge_layer(item: Item, found: tuple[torch.Tensor, ...], recipe: str) -> None:
    """AssertionError unless sampled rows and columns of y, dx and dweight are within the bound."""
    x, weight, grad = (part.detach() for part in item)
    y, dx, dweight = found

    def along(value: torch.Tensor, rows: torch.Tensor) -> Quantized:
        pair = mxref.quantize(value, recipe)
        return Quantized(taken(pair.payload, rows), taken(pair.scale, rows))

    def across(value: torch.Tensor, columns: torch.Tensor) -> Quantized:
        pair = mxref.quantize(value, recipe, block=(32, 1))
        return Quantized(taken(pair.payload.mT, columns), taken(pair.scale.mT, columns))

    for result, left, right in (
        (y, (along, x), (along, weight)),
        (dx, (along, grad), (across, weight)),
        (dweight, (across, grad), (across, x)),
    ):
        rows, columns = (sample(count, result.device) for count in result.shape)
        judge(result[rows][:, columns], left[0](left[1], rows), right[0](right[1], columns))


def sample(count: int, device: torch.device) -> torch.Tensor:
    """Indices of at most SAMPLED rows, always the same."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(5))
    return order[:SAMPLED].to(device)


def plain_scale(pair: Quantized) -> torch.Tensor:
    """The scales of a matrix (R, C) that a layer's cast stored, a row of S for each of x."""
    return mxref.layouts.decode(pair.scale, cast.LAYOUT, shape=tuple(pair.payload.shape))


def taken(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Rows of a float8 tensor."""
    return x.view(torch.uint8)[rows].view(x.dtype)


def judge(result: torch.Tensor, a: Quantized, b: Quantized) -> None:
    """AssertionError unless `result` is a @ b.mT within the bound."""
    right = Quantized(b.payload.mT, b.scale.mT)
    mxref.testing.assert_matmul_within_bound(result, a, right)


def job(labels: dict[str, Any], pool: Pool, call: Callable[[Any], Any], moved: int = 0) -> Job:
    """A job that is compared with itself; products have no bytes of their own."""
    return Job(labels, pool, call, call, moved)


def guarded(made: Job, check: Callable[[], None]) -> Job:
    """The job, with a note where `check` fails."""
    try:
        check()
        made.verified = "within the bound"
    except AssertionError as error:
        made.note = f"WRONG: {' '.join(str(error).split())[:200]}"
    except Exception as error:  # any kernel's failure belongs in its row
        made.note = f"error: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return made


def matmul_pool(m: int, n: int, k: int, device: torch.device) -> Pool:
    """Sets (a, b, a in bf16, b in bf16) of quantized operands that together exceed the L2."""
    count = sets_for(n * k, cache_bytes(device))
    generator = torch.Generator(device).manual_seed(6)
    made = []
    for _ in range(count):
        values = [
            torch.randn(rows, k, device=device, generator=generator).to(torch.bfloat16)
            for rows in (m, n)
        ]
        pairs = [cast.along(value, CastConfig()) for value in values]
        made.append((*pairs, *values))
    return Pool(made)


def matmul_job(pool: Pool, backend: str, config: int, labels: dict[str, Any]) -> Job:
    """One back end; "bf16" is torch.matmul of the unquantized operands, which is not judged."""
    if backend == "bf16":
        return job(labels, pool, lambda item: item[2] @ item[3].mT)

    def call(item: Any) -> torch.Tensor:
        return op.matmul(*item[0], *item[1], backend, config)

    def check() -> None:
        a, b = pool.items[0][:2]
        result = call(pool.items[0])
        rows, columns = (sample(count, result.device) for count in result.shape)
        left, right = (
            Quantized(taken(pair.payload, at), taken(plain_scale(pair), at))
            for pair, at in ((a, rows), (b, columns))
        )
        judge(result[rows][:, columns], left, right)

    return guarded(job(labels, pool, call), check)
