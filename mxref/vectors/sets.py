"""Vectors and Case: the inputs of a recipe x block x layout, and the bytes that belong to them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mxref import layouts
from mxref.blocks import quantize
from mxref.formats import ELEMENTS, INPUTS, InputFormat
from mxref.recipes import Recipe, resolve
from mxref.tiles import Block, logical_shape, require_block
from mxref.vectors.inputs import inputs

FORMAT = "mxref-vectors-1"
"""The name of the inputs and of the files' form: it changes if a byte of either does."""

DTYPES: dict[torch.dtype, InputFormat] = {
    getattr(torch, row.torch_dtype): row for row in INPUTS.values()
}


@dataclass(frozen=True)
class Case:
    """One named tensor and its bytes.

    `bits` (int64, the shape of x) holds the patterns of the elements of x; `payload` (uint8) has
    the same shape; `scale` (uint8) has the stored shape of the layout. `dtype` is "bf16", "fp16" or
    "fp32".
    """

    name: str
    dtype: str
    bits: Tensor
    payload: Tensor
    scale: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of x."""
        return tuple(self.bits.shape)

    @property
    def x(self) -> Tensor:
        """The input as a tensor of its dtype, a new one each time."""
        return values(self.bits, self.dtype)

    def arrays(self) -> Iterator[tuple[str, Tensor, int]]:
        """(name, integers, bytes of one) for x, payload and scale."""
        yield "x", self.bits, INPUTS[self.dtype].bits // 8
        yield "payload", self.payload, 1
        yield "scale", self.scale, 1


@dataclass(frozen=True)
class Vectors:
    """All cases of one recipe x block x layout. `spec` is the `mxref.SPEC` they belong to."""

    spec: str
    recipe: Recipe
    block: Block
    scale_layout: str
    contract: int | None
    cases: tuple[Case, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the cases, in their order."""
        return tuple(dict.fromkeys(case.dtype for case in self.cases))

    @property
    def elements(self) -> int:
        """How many elements the inputs have."""
        return sum(case.bits.numel() for case in self.cases)

    @property
    def blocks(self) -> int:
        """How many blocks the inputs have."""
        return sum(math.prod(logical_shape(case.shape, self.block)) for case in self.cases)


def make(
    recipe: str | Recipe = "rceil",
    *,
    block: tuple[int, int] = (1, 32),
    scale_layout: str = "plain",
    contract: int | None = None,
    dtypes: tuple[torch.dtype, ...] = tuple(DTYPES),
) -> Vectors:
    """The golden vectors of a recipe x block x layout: `mxref.quantize` on the frozen inputs.

    Cases are named blocks (zeros of both signs, subnormals, the ends of the dtype, NaN and Inf,
    each boundary of the scale rules and one ulp beside it), the thresholds of every binade, every
    payload code and tie, partial blocks, empty tensors, ranks 1 to 3, any bits at all. Every
    payload code and every scale byte that the recipe reaches from the dtype occurs.

    Args:
        recipe: a name in `mxref.RECIPES` or a Recipe.
        block: (1, 32), (32, 1) or (32, 32).
        scale_layout: a name in `mxref.layouts.LAYOUTS`.
        contract: -1 or -2 as in `mxref.layouts.encode`; a swizzled (32, 32) needs it.
        dtypes: bfloat16, float16, float32, or some of them.

    Raises:
        TypeError, ValueError: a wrong argument, named with its value and what is allowed.
        NotImplementedError: an axis value of the recipe that is not built.

    Source: POLICY, which inputs are worth freezing. The bytes are those of `mxref.quantize`.

    >>> vectors = make("rceil", dtypes=(torch.bfloat16,))
    >>> case = next(case for case in vectors.cases if case.name == "maximum-plus-ulp")
    >>> hex(case.bits[0, 0]), case.scale.tolist(), hex(case.payload[0, 0])
    ('0x43e1', [[128]], '0x76')
    """
    from mxref import SPEC

    resolved, tile = resolve(recipe), require_block(block)
    _require_layout(scale_layout)
    # asks the layout, which says what is wrong with the contract
    layouts.stored_shape((32, 32), scale_layout, block=tile, contract=contract)
    cases = []
    for fmt in _formats(dtypes):
        for name, bits in inputs(fmt, ELEMENTS[resolved.element], tile).items():
            payload, scale = quantize(values(bits, fmt.name), resolved, block=tile)
            stored = layouts.encode(
                scale.view(torch.uint8),
                scale_layout,
                block=tile,
                shape=tuple(bits.shape),
                contract=contract,
            )
            cases.append(Case(name, fmt.name, bits, payload.view(torch.uint8), stored))
    return Vectors(SPEC, resolved, tile, scale_layout, contract, tuple(cases))


def values(bits: Tensor, dtype: str) -> Tensor:
    """Patterns (int64) as the elements of a tensor of the dtype."""
    fmt = INPUTS[dtype]
    signed = bits - ((bits >> (fmt.bits - 1)) << fmt.bits)
    integer = torch.int32 if fmt.bits == 32 else torch.int16
    return signed.to(integer).view(getattr(torch, fmt.torch_dtype))


def _require_layout(name: object) -> None:
    expected = ", ".join(map(repr, layouts.LAYOUTS))
    if not isinstance(name, str):
        got = type(name).__name__
        raise TypeError(f"scale_layout={name!r}: expected one of {expected}, got {got}")
    if name not in layouts.LAYOUTS:
        raise ValueError(f"scale_layout={name!r}: expected one of {expected}")


def _formats(dtypes: object) -> list[InputFormat]:
    expected = ", ".join(map(str, DTYPES))
    if not isinstance(dtypes, (tuple, list)):
        raise TypeError(f"dtypes={dtypes!r}: expected a tuple of {expected}")
    if not dtypes:
        raise ValueError(f"dtypes={dtypes!r}: expected at least one of {expected}")
    for dtype in dtypes:
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtypes={dtypes!r}: {dtype!r} is not one of {expected}")
        if dtype not in DTYPES:
            raise ValueError(f"dtypes={dtypes!r}: {dtype} is not one of {expected}")
    return [row for dtype, row in DTYPES.items() if dtype in dtypes]
