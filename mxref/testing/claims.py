"""What a target says of itself: which bytes, which blocks, where they lie, what it takes.

Claims are plain data, so that another way to state them (a class, a file) only has to build one.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from mxref.formats import ELEMENTS, INPUTS, ElementFormat, InputFormat
from mxref.layouts import LAYOUTS
from mxref.recipes import Recipe, resolve
from mxref.tiles import Block, require_block

LEVELS = ("smoke", "full", "exhaustive", "fuzz")
"""Seconds, under a minute, every fp32 amax and tensors past 2^31 elements, a time budget."""

MOST_MULTIPLE = 1024
"""A matrix of 40 x 40 such tiles still fits a small machine."""

NAN_POLICIES = ("any", "strict")
PAYLOAD_ORDERS = ("any", "row", "col")
"""How a matrix of payload lies: row-major, column-major, or nothing claimed."""

INPUT_FORMATS: dict[torch.dtype, InputFormat] = {
    getattr(torch, row.torch_dtype): row for row in INPUTS.values()
}


@dataclass(frozen=True)
class Claims:
    """A target's claims, checked: build one with `Claims.of`."""

    recipe: Recipe
    block: Block
    scale_layout: str
    contract: int | None
    dtypes: tuple[torch.dtype, ...]
    device: torch.device
    multiple_of: int
    nan: str
    level: str
    seed: int
    payload_order: str = "any"
    flushes_subnormals: bool = False
    deterministic: bool = True
    exact_scales: bool = True
    fuzz_seconds: int = 60

    @classmethod
    def of(
        cls,
        *,
        recipe: object,
        block: object = (1, 32),
        scale_layout: object = "plain",
        contract: object = None,
        dtypes: object = tuple(INPUT_FORMATS),
        device: object = "cpu",
        multiple_of: object = 32,
        nan: object = "any",
        level: object = "full",
        seed: object = 0,
        payload_order: object = "any",
        flushes_subnormals: object = False,
        deterministic: object = True,
        exact_scales: object = True,
        fuzz_seconds: object = 60,
    ) -> "Claims":
        """The claims, or a ValueError or TypeError that names the argument and what is allowed."""
        resolved = resolve(recipe)
        tile = require_block(block)
        layout = _one_of(scale_layout, "scale_layout", tuple(LAYOUTS))
        return cls(
            recipe=resolved,
            block=tile,
            scale_layout=layout,
            contract=_contract(contract, tile, layout),
            dtypes=_dtypes(dtypes),
            device=_device(device),
            multiple_of=_multiple(multiple_of),
            nan=_one_of(nan, "nan", NAN_POLICIES),
            level=_one_of(level, "level", LEVELS),
            seed=_integer(seed, "seed", least=0),
            payload_order=_one_of(payload_order, "payload_order", PAYLOAD_ORDERS),
            flushes_subnormals=_flag(flushes_subnormals, "flushes_subnormals"),
            deterministic=_flag(deterministic, "deterministic"),
            exact_scales=_flag(exact_scales, "exact_scales"),
            fuzz_seconds=_integer(fuzz_seconds, "fuzz_seconds", least=1),
        )

    @property
    def element(self) -> ElementFormat:
        """The element format of the payload."""
        return ELEMENTS[self.recipe.element]

    @property
    def step(self) -> int:
        """Matrices that must be answered have both sizes a multiple of this."""
        return math.lcm(self.multiple_of, 32)

    def as_dict(self) -> dict[str, Any]:
        """The claims as JSON can hold them."""
        return {
            "recipe": self.recipe.label,
            "block": list(self.block),
            "scale_layout": self.scale_layout,
            "contract": self.contract,
            "dtypes": [str(dtype).removeprefix("torch.") for dtype in self.dtypes],
            "device": str(self.device),
            "multiple_of": self.multiple_of,
            "nan": self.nan,
            "level": self.level,
            "seed": self.seed,
            "payload_order": self.payload_order,
            "flushes_subnormals": self.flushes_subnormals,
            "deterministic": self.deterministic,
            "exact_scales": self.exact_scales,
        }

    def not_claimed(self) -> tuple[str, ...]:
        """What the target does not claim, a line each: the report repeats them as declined."""
        lines = [
            f"{str(dtype).removeprefix('torch.')}: not among dtypes"
            for dtype in INPUT_FORMATS
            if dtype not in self.dtypes
        ]
        if self.multiple_of > 1:
            lines.append(f"other sizes than multiples of {self.step}: may be refused")
        if self.nan == "any":
            lines.append("one NaN code: any is taken (nan='any')")
        if self.payload_order == "any":
            lines.append("payload order: any strides are taken (payload_order='any')")
        if self.flushes_subnormals:
            lines.append(
                "subnormal inputs: judged as zeros of their sign (flushes_subnormals=True)"
            )
        if not self.deterministic:
            lines.append("the same bytes again: not judged (deterministic=False)")
        if not self.exact_scales:
            lines.append(
                "exact scales: a scale may be one step off, the payload is judged under the "
                "target's own scales (exact_scales=False)"
            )
        return tuple(lines)


def _one_of(value: object, name: str, allowed: tuple[str, ...]) -> str:
    expected = ", ".join(map(repr, allowed))
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}: expected one of {expected}, got {type(value).__name__}")
    if value not in allowed:
        raise ValueError(f"{name}={value!r}: expected one of {expected}")
    return value


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: expected True or False")
    return value


def _integer(value: object, name: str, *, least: int, most: int = 1 << 62) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: expected an int of at least {least}")
    if not least <= value <= most:
        upper = f" and at most {most}" if most < 1 << 62 else ""
        raise ValueError(f"{name}={value!r}: expected an int of at least {least}{upper}")
    return value


def _multiple(value: object) -> int:
    found = _integer(value, "multiple_of", least=1, most=MOST_MULTIPLE)
    step = math.lcm(found, 32)
    if step > MOST_MULTIPLE:
        raise ValueError(
            f"multiple_of={found!r}: sizes would be multiples of {step}, its least common multiple "
            f"with 32: expected at most {MOST_MULTIPLE}"
        )
    return found


def _dtypes(value: object) -> tuple[torch.dtype, ...]:
    expected = ", ".join(map(str, INPUT_FORMATS))
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"dtypes={value!r}: expected a tuple of {expected}")
    if not value:
        raise ValueError(f"dtypes={value!r}: expected at least one of {expected}")
    for dtype in value:
        if dtype not in INPUT_FORMATS:
            kind = ValueError if isinstance(dtype, torch.dtype) else TypeError
            raise kind(f"dtypes={value!r}: {dtype!r} is not one of {expected}")
    return tuple(dict.fromkeys(value))


def _device(value: object) -> torch.device:
    if not isinstance(value, (str, torch.device)):
        raise TypeError(
            f"device={value!r}: expected a name such as 'cpu' or 'cuda', or a torch.device"
        )
    try:
        device = torch.device(value)
        torch.empty(1, device=device)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"device={str(value)!r}: expected a device of this machine ({reason})"
        ) from None
    if device.type == "meta":
        raise ValueError("device='meta': expected a device that holds bytes")
    return device


def _contract(value: object, block: Block, layout: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"contract={value!r}: expected -1, -2 or None")
    if value not in (None, -1, -2):
        raise ValueError(f"contract={value!r}: expected -1, -2 or None")
    fixed = {(1, 32): -1, (32, 1): -2}.get(block)
    if fixed is not None and value not in (None, fixed):
        raise ValueError(f"contract={value!r}: expected {fixed} or None for block={block}")
    if value is None and fixed is None and LAYOUTS[layout].needs_contract:
        raise ValueError(
            f"contract=None: expected -1 or -2, the dimension that the GEMM sums over, for "
            f"block={block} in scale_layout={layout!r}"
        )
    return value
