"""One shape and dtype on one device: its inputs, what they quantize to, and its limits."""

import math
from collections.abc import Callable
from typing import Any

import torch

import mxref
from mxkernels.bench.jobs import Job, Pool, cache_bytes, sets_for, verify
from mxkernels.bench.limits import LIMITS, SMALL, saturated
from mxkernels.bench.timing import interleaved, summary, watch_for
from mxkernels.quantize.shapes import contracted, payload_strides
from mxref import Quantized

SEED = 1
CANDIDATE_ROUNDS = 25
KEPT = 4


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as the command line takes it.

    >>> shape_text((8, 8192, 5120))
    '8x8192x5120'
    """
    return "x".join(map(str, shape))


def stored(
    quantized: Quantized, block: tuple[int, int], payload_order: str, scale_layout: str
) -> Quantized:
    """mxref's result with its payload in this order and its scale in this layout."""
    payload, scale = quantized
    strides = payload_strides(payload.shape, payload_order)
    if payload.stride() != strides:
        ordered = torch.empty_strided(
            payload.shape, strides, dtype=torch.uint8, device=payload.device
        )
        payload = ordered.copy_(payload.view(torch.uint8)).view(payload.dtype)
    if scale_layout != "plain":
        contract = contracted(block, payload_order)
        scale = mxref.layouts.encode(
            scale, scale_layout, block=block, shape=tuple(payload.shape), contract=contract
        )
    return Quantized(payload, scale)


class Site:
    """Inputs are made when first asked for and shared by all that is timed here."""

    def __init__(
        self, shape: tuple[int, ...], dtype: str | torch.dtype, device: str, data: str = "randn"
    ):
        dtype = str(dtype).removeprefix("torch.")
        self.key = (shape, dtype, data)
        self.shape, self.device, self.data = shape, torch.device(device), data
        self.dtype = torch.uint8 if dtype == "e8m0" else getattr(torch, dtype)
        self.labels = {"shape": list(shape), "dtype": dtype, "data": data}
        self.candidates: list[Job] = []
        self._pools: dict[str, Pool] = {}
        self._best: dict[str, Job | None] = {}
        self._expected: dict[Any, Quantized] = {}

    @property
    def numel(self) -> int:
        """Elements of one input."""
        return math.prod(self.shape)

    @property
    def small(self) -> bool:
        """Whether launches weigh here; matrices of scales have a target of their own."""
        return self.numel < SMALL and self.dtype != torch.uint8

    def pool(self, source: str) -> Pool:
        """Inputs: "n" contiguous, "t" a transposed view, "codes" their e4m3 codes."""
        source = {"x": "n", "scales": "n"}.get(source, source)
        if source not in self._pools:
            size = 3 if source == "codes" else self.dtype.itemsize + 1
            count = sets_for(size * self.numel, cache_bytes(self.device))
            self._pools[source] = Pool([self._input(source, i) for i in range(count)])
        return self._pools[source]

    def own(self, name: str, made: Callable[[], Pool]) -> Pool:
        """A pool of another kind of input, made once."""
        if name not in self._pools:
            self._pools[name] = made()
        return self._pools[name]

    def _input(self, source: str, index: int) -> torch.Tensor:
        if source == "codes":
            made = self.pool("n").items
            return saturated(made[index % len(made)]).roll(index, -1)
        *lead, rows, columns = self.shape
        shape = self.shape if source == "n" else (*lead, columns, rows)
        generator = torch.Generator(self.device).manual_seed(SEED + index)
        x = torch.randn(shape, dtype=self.dtype, device=self.device, generator=generator)
        if self.data != "randn":
            _spoil(x, self.data, generator)
        return x if source == "n" else x.transpose(-1, -2)

    def expected(self, x: torch.Tensor, recipe: str, block: tuple[int, int]) -> Quantized:
        """`mxref.quantize`; the last KEPT results serve all orders and layouts of an input."""
        key = (x.data_ptr(), x.stride(), recipe, block)
        if key not in self._expected:
            while len(self._expected) >= KEPT:
                self._expected.pop(next(iter(self._expected)))
            self._expected[key] = mxref.quantize(x, recipe, block=block)
        return self._expected[key]

    def limit(self, name: str, pool: Pool | None = None) -> Job | None:
        """The fastest candidate of this limit here; None if every one of them failed."""
        if name not in self._best:
            limit = LIMITS[name]
            jobs = limit.jobs(pool or self.pool(limit.source), self.labels)
            verify(jobs)
            sound = [job for job in jobs if not job.failed]
            interleaved(sound, CANDIDATE_ROUNDS, watch_for(self.device))
            self.candidates += jobs
            sound = [job for job in sound if not job.failed]
            self._best[name] = min(sound, key=_median, default=None)
        return self._best[name]


def _spoil(x: torch.Tensor, data: str, generator: torch.Generator) -> None:
    """Give half of the rows of contiguous `x` the patterns that kernels get wrong.

    "specials": any bit pattern in every second row; in 32 rows of each 64 NaN and Inf among them,
    which poison nearly every tile. "subnormals": in 32 rows of each 64, so that whole blocks of
    either direction are subnormal.
    """
    bits = x.view(torch.int16 if x.element_size() == 2 else torch.int32).view(-1, x.shape[-1])
    ends = torch.iinfo(bits.dtype)
    patterns = round(1 / torch.finfo(x.dtype).eps)  # 2^mantissa bits
    rows = torch.arange(len(bits), device=x.device) // 32 % 2 == 0
    if data == "specials":
        bits[::2].random_(ends.min, ends.max, generator=generator)
        # the lowest bit of the exponent cleared: no NaN, no Inf
        bits &= torch.where(rows, -1, ~patterns).to(bits.dtype)[:, None]
        return
    tiny = torch.empty_like(bits).random_(0, patterns, generator=generator)
    tiny |= torch.where(bits < 0, ends.min, 0).to(bits.dtype)
    bits.copy_(torch.where(rows[:, None], tiny, bits))


def _median(job: Job) -> float:
    return summary(job.samples["events"])["median_us"]
