"""The limits: what the same memory traffic costs without the arithmetic of a quantizer.

=========  ============================================  ==================================
limit      does                                          bytes an element (bf16)
=========  ============================================  ==================================
copy       torch's device-to-device copy                 2 read, 2 written
stream     cast to e4m3, same order                      2 read, 1 written
transpose  cast to e4m3, last two dimensions swapped     2 read, 1 written
dual       both of these from one read                   2 read, 2 written
widen      e4m3 to bf16                                  1 read, 2 written
cold       torch's copy of scale bytes                   1 read, 1 written
=========  ============================================  ==================================

Each is our own best, a floor to beat and not physics: of its few candidates, torch's own kernel
among them where there is one, the fastest on this device and shape is taken.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import torch

from mxkernels.bench.jobs import Job, Pool
from mxkernels.loader import interpreting, kernels

Call = Callable[[Any], Any]


@dataclass(frozen=True)
class Limit:
    """One row of the table: what it needs as input, its candidates, and what is right."""

    name: str
    source: str
    candidates: Callable[[ModuleType], dict[str, Call]]
    expected: Call
    moved: Callable[[torch.Tensor], int]

    def jobs(self, pool: Pool, labels: dict[str, Any]) -> list[Job]:
        """One Job for each candidate."""
        device = pool.items[0].device
        moved = self.moved(pool.items[0])
        names = {"family": "limits", "kernel": self.name, "variant": self.name}
        return [
            Job(labels | names | {"config": name}, pool, call, self.expected, moved)
            for name, call in self.candidates(module_for(device)).items()
        ]


def module_for(device: torch.device) -> ModuleType:
    """The copy of the limit kernels for this device."""
    return kernels("bench.limit_kernels", interpret=device.type == "cpu")


def _run(launch: Callable[..., Any], config: Any, x: torch.Tensor) -> Any:
    if x.device.type != "cpu":
        return launch(x, config)
    with interpreting():
        return launch(x, config)


def _ours(launch: Callable[..., Any], configs: tuple[Any, ...]) -> dict[str, Call]:
    return {config_text(config): partial(_run, launch, config) for config in configs}


def config_text(config: Any) -> str:
    """A configuration in few letters.

    >>> from collections import namedtuple
    >>> config_text(namedtuple("Flat", "blocks warps")(64, 4))
    'blocks=64 warps=4'
    """
    if hasattr(config, "_asdict"):
        return " ".join(f"{name}={value}" for name, value in config._asdict().items())
    return "" if config is None else str(config)


def torch_cast(x: torch.Tensor) -> torch.Tensor:
    """torch's own cast, which makes a NaN of what would saturate; verified like the others."""
    return x.to(torch.float8_e4m3fn).view(torch.uint8)


def saturated(x: torch.Tensor) -> torch.Tensor:
    """The codes a saturating cast gives, from torch on x's device; every NaN is 0x7F."""
    return torch_cast(x.clamp(-448, 448)).masked_fill_(x.isnan(), 0x7F)


def copied(x: torch.Tensor) -> torch.Tensor:
    """A copy of `x` in new memory."""
    return torch.empty_like(x).copy_(x)


def _turned(x: torch.Tensor) -> torch.Tensor:
    return saturated(x).transpose(-1, -2).contiguous()


def widened(codes: torch.Tensor) -> torch.Tensor:
    """The bf16 values of e4m3 codes (uint8), by torch."""
    return codes.view(torch.float8_e4m3fn).to(torch.bfloat16)


def _copies(_: ModuleType) -> dict[str, Call]:
    return {"torch": copied}


LIMITS: dict[str, Limit] = {
    limit.name: limit
    for limit in (
        Limit("copy", "x", _copies, lambda x: x, lambda x: 2 * x.nbytes),
        Limit(
            "stream",
            "x",
            lambda m: _ours(m.stream, m.FLAT) | {"torch": torch_cast},
            saturated,
            lambda x: x.nbytes + x.numel(),
        ),
        Limit(
            "transpose",
            "x",
            lambda m: _ours(m.transpose, m.TILES),
            _turned,
            lambda x: x.nbytes + x.numel(),
        ),
        Limit(
            "dual",
            "x",
            lambda m: _ours(m.dual, m.TILES),
            lambda x: (saturated(x), _turned(x)),
            lambda x: x.nbytes + 2 * x.numel(),
        ),
        Limit(
            "widen",
            "codes",
            lambda m: _ours(m.widen, m.WIDEN) | {"torch": widened},
            widened,
            lambda codes: 3 * codes.numel(),
        ),
        Limit("cold", "scales", _copies, lambda x: x, lambda x: 2 * x.nbytes),
    )
}


def limit_of(payload_order: str, input_order: str) -> str:
    """The limit of a quantizer: it transposes where payload and input lie in different orders.

    >>> limit_of("col", "n"), limit_of("col", "t"), limit_of("row", "n")
    ('transpose', 'stream', 'stream')
    """
    return "stream" if (payload_order == "row") == (input_order == "n") else "transpose"


def target_of(block: tuple[int, int], payload_order: str, input_order: str) -> float | None:
    """The least share of its limit that the speed table asks for; None where it says nothing.

    >>> target_of((1, 32), "row", "n"), target_of((32, 1), "col", "t")
    (0.98, 0.98)
    >>> target_of((32, 32), "col", "n"), target_of((32, 1), "row", "n")
    (0.95, 0.95)
    """
    along_rows = block == (1, 32)
    table = {
        ("row", "n"): 0.98 if along_rows else 0.95 if block == (32, 1) else None,
        ("col", "n"): None if along_rows else 0.95,
        ("col", "t"): None if along_rows else 0.98,
    }
    return table.get((payload_order, input_order))


TARGETS = {"both": 0.90, "dequantize": 0.95, "groups": 0.85}
"""The least share of the other operations."""

SMALL = 1 << 25
"""Elements below which launches weigh: such shapes are also timed as CUDA graphs."""

SMALL_TARGET = 1.25
"""How many times a plain cast, which is the limit `stream`, a small shape may take, in time."""
