"""Asking a black box: which geometry its bytes fit, and its answers to the probes as bytes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mxref import layouts
from mxref.blocks import quantize
from mxref.formats import BLOCKS, ELEMENTS, INPUTS, InputFormat
from mxref.layouts import LAYOUTS
from mxref.recipes import RECIPES
from mxref.testing.answer import require_pair
from mxref.testing.arrange import arrange
from mxref.testing.identity import Refusal
from mxref.testing.probes import Blocks, as_patterns, noise_matrix, probes
from mxref.tiles import Block, tiled

FORMATS: dict[torch.dtype, InputFormat] = {
    getattr(torch, row.torch_dtype): row for row in INPUTS.values()
}
STEP = 128
"""Both sizes of every input are multiples of it, which all kernels take."""
SHAPES = ((256, 384), (128, 128), (1024, 1024))
"""Shapes tried to find out block and layout."""


class Geometry(NamedTuple):
    """Which elements share a scale and where it lies."""

    block: Block
    layout: str
    contract: int | None
    element: str


class Answer(NamedTuple):
    """What a target gave for a group of blocks: codes (blocks, elements), scale bytes."""

    group: str
    dtype: torch.dtype
    blocks: Blocks
    x: Tensor
    codes: Tensor
    bytes: Tensor


@dataclass
class BlackBox:
    """The function, and what it refused so far."""

    fn: Callable[[Tensor], Any]
    device: torch.device

    def __post_init__(self) -> None:
        self.refused: list[Refusal] = []

    def ask(self, x: Tensor, what: str) -> tuple[Tensor, Tensor] | None:
        """(payload, scale) as uint8 on the CPU; None where fn refuses or gives no MX tensor."""
        try:
            output = self.fn(x.to(self.device, copy=True))
            require_pair(output)
            payload, scale = (each.detach().cpu() for each in output)
            if tuple(payload.shape) != tuple(x.shape) or payload.element_size() != 1:
                raise ValueError(f"payload has shape {tuple(payload.shape)}, x {tuple(x.shape)}")
            self.payload_dtype = payload.dtype
            return (
                payload.contiguous().view(torch.uint8),
                scale.contiguous().view(torch.uint8).reshape(-1),
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            lines = str(error).strip().splitlines() or [""]
            reason = f"{type(error).__name__}: {lines[0][:200]}".rstrip(": ")
            self.refused.append(Refusal(what, FORMATS[x.dtype].name, reason))
            return None

    def geometry(
        self,
        block: Block | None,
        dtypes: tuple[torch.dtype, ...],
        layout: str | None,
        contract: int | None,
    ) -> Geometry | None:
        """The block and layout whose bytes fit best on noise, the given block first."""
        for shape in SHAPES:
            for dtype in dtypes:
                x = _values(noise_matrix(FORMATS[dtype], *shape), dtype)
                answer = self.ask(x, f"noise of shape {shape}")
                if answer is None:
                    continue
                candidates = list(self._candidates(block, shape, answer[1], layout, contract))
                if candidates:
                    return max(candidates, key=lambda each: _fit(x, answer, each))
                size = f"{answer[1].numel()} scale bytes fit no block and layout"
                self.refused.append(Refusal(f"noise of shape {shape}", FORMATS[dtype].name, size))
        return None

    def _candidates(
        self,
        block: Block | None,
        shape: tuple[int, ...],
        stored: Tensor,
        layout: str | None,
        contract: int | None,
    ) -> Iterator[Geometry]:
        elements = [
            row.name
            for row in ELEMENTS.values()
            if self.payload_dtype in (torch.uint8, getattr(torch, row.torch_dtype))
        ]
        blocks = sorted(BLOCKS, key=lambda each: each != block)
        for each in blocks:
            for name in LAYOUTS if layout is None else (layout,):
                for summed in _contracts(each, name, contract):
                    size = layouts.stored_shape(shape, name, block=each, contract=summed)
                    if torch.Size(size).numel() == stored.numel():
                        for element in elements:
                            yield Geometry(each, name, summed, element)

    def answers(self, geometry: Geometry, dtypes: tuple[torch.dtype, ...]) -> Iterator[Answer]:
        """fn's bytes for every group of every dtype; what it refuses is listed."""
        elements = geometry.block[0] * geometry.block[1]
        for dtype in dtypes:
            found = probes(FORMATS[dtype], ELEMENTS[geometry.element])
            for group, blocks in found.items():
                if not blocks:
                    continue
                x = arrange(_values(as_patterns(blocks, elements), dtype), geometry.block, STEP)
                output = self.ask(x, group)
                if output is None:
                    continue
                scale = _decoded(output[1], x, geometry)
                if scale is None:
                    size = f"{output[1].numel()} scale bytes do not fit {geometry.layout}"
                    self.refused.append(Refusal(group, FORMATS[dtype].name, size))
                    continue
                codes = rows_of(output[0], geometry.block)
                yield Answer(group, dtype, blocks, x, codes, scale.reshape(-1))


def _contracts(block: Block, layout: str, contract: int | None) -> tuple[int | None, ...]:
    if block[0] != block[1] or not LAYOUTS[layout].needs_contract:
        return (None,)
    return (-1, -2) if contract is None else (contract,)


def _values(patterns: Tensor, dtype: torch.dtype) -> Tensor:
    integer = torch.int32 if FORMATS[dtype].bits == 32 else torch.int16
    return patterns.to(integer).view(dtype)


def _decoded(stored: Tensor, x: Tensor, geometry: Geometry) -> Tensor | None:
    try:
        return layouts.decode(
            stored,
            geometry.layout,
            block=geometry.block,
            shape=tuple(x.shape),
            contract=geometry.contract,
        )
    except ValueError:
        return None


def rows_of(payload: Tensor, block: Block) -> Tensor:
    """The payload as (blocks, elements of a block), in the order of the logical scale."""
    return tiled(payload, block).permute(0, 1, 3, 2, 4).reshape(-1, block[0] * block[1])


def _fit(x: Tensor, answer: tuple[Tensor, Tensor], geometry: Geometry) -> float:
    """The largest share of scale bytes and payload codes that a main recipe predicts."""
    scale = _decoded(answer[1], x, geometry)
    if scale is None:
        return -1.0
    best = 0.0
    for name in ("floor", "rceil", "ceil", "even"):
        recipe = replace(RECIPES[name], element=geometry.element)
        payload, wanted = (
            each.view(torch.uint8) for each in quantize(x, recipe, block=geometry.block)
        )
        scales = float((wanted == scale).double().mean())
        best = max(best, scales + float((payload == answer[0]).double().mean()))
    return best
