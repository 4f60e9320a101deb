"""What is known of a wrong answer: the bytes, the reference's bytes, and the blocks that differ.

Hypotheses see blocks as rows: `(count, elements of a block)`, in the order of the logical scale.
Of a large tensor only a sample of the blocks is looked at, half of them wrong ones.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from mxref import layouts
from mxref.bits import MAGNITUDE
from mxref.blocks import quantize
from mxref.formats import ELEMENTS, ElementFormat
from mxref.recipes import Recipe
from mxref.testing.diagnosis.arithmetic import to_float64
from mxref.tiles import Block, logical_shape, tiled

SAMPLE = 1 << 15
"""Elements that hypotheses are tested on: all of them answer in less than a second."""


@dataclass(frozen=True)
class Finding:
    """One hypothesis tested: for each block, whether it predicts the scale and the payload.

    `rank` orders those that explain everything: lower is more specific. `padding` is whether the
    stored scale bytes that belong to no block are as predicted; `recipe` names the recipe that
    predicts, with its mark where it is unverified.
    """

    cause: str
    rank: int
    scale: Tensor
    payload: Tensor
    padding: bool
    recipe: str = ""


@dataclass(eq=False)
class Evidence:
    """One answer under test. Tensors are on the CPU; `source` keeps its strides."""

    source: Tensor
    recipe: Recipe
    block: Block
    layout: str
    contract: int | None
    payload: Tensor
    stored: Tensor
    first_element: int = 0
    given: bool = False

    @cached_property
    def x(self) -> Tensor:
        """The source, contiguous."""
        return self.source.contiguous()

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of x."""
        return tuple(self.x.shape)

    @property
    def element(self) -> ElementFormat:
        """The element format."""
        return ELEMENTS[self.recipe.element]

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """The logical shape of the scale."""
        return logical_shape(self.shape, self.block)

    def quantized(self, x: Tensor, **keywords: object) -> tuple[Tensor, Tensor]:
        """(payload, logical scale) of the reference as uint8, for the recipe and block claimed."""
        arguments = {"recipe": self.recipe, "block": self.block, **keywords}
        found = quantize(x, **arguments)  # type: ignore[arg-type]
        return found.payload.view(torch.uint8), found.scale.view(torch.uint8)

    @cached_property
    def expected(self) -> tuple[Tensor, Tensor]:
        """The reference's payload and logical scale; under the answer's own scales if `given`."""
        return self.quantized(self.x, scale=self.scale) if self.given else self.quantized(self.x)

    def encoded(self, scale: Tensor, layout: str | None = None) -> Tensor:
        """Logical scales as the layout stores them, flat."""
        return layouts.encode(
            scale,
            self.layout if layout is None else layout,
            block=self.block,
            shape=self.shape,
            contract=self.contract,
        ).reshape(-1)

    def decoded(self, stored: Tensor) -> Tensor:
        """Stored bytes as logical scales."""
        return layouts.decode(
            stored, self.layout, block=self.block, shape=self.shape, contract=self.contract
        )

    @cached_property
    def scale(self) -> Tensor:
        """The answer's logical scale."""
        return self.decoded(self.stored)

    @cached_property
    def padding_places(self) -> Tensor:
        """Which stored bytes no logical scale is read from."""
        index = torch.arange(self.stored.numel())
        place = torch.zeros(self.grid, dtype=torch.int64)
        for shift in range(0, 40, 8):
            plane = self.decoded(((index >> shift) & 0xFF).to(torch.uint8))
            place |= plane.to(torch.int64) << shift
        outside = torch.ones(self.stored.numel(), dtype=torch.bool)
        outside[place.reshape(-1)] = False
        return outside

    def same_padding(self, stored: Tensor) -> bool:
        """Whether the answer's bytes outside of the logical scales are these."""
        return torch.equal(stored[self.padding_places], self.stored[self.padding_places])

    @cached_property
    def padding(self) -> bool:
        """Whether the answer's padding is right."""
        return self.given or self.same_padding(self.encoded(self.expected[1]))

    def all_rows(self, tensor: Tensor) -> Tensor:
        """A tensor of x's shape as (blocks, elements of a block); missing elements are zero."""
        tiles = tiled(tensor, self.block).permute(0, 1, 3, 2, 4)
        return tiles.reshape(prod(self.grid), self.block[0] * self.block[1])

    def rows(self, tensor: Tensor) -> Tensor:
        """The sampled blocks of a tensor of x's shape."""
        return self.all_rows(tensor)[self.taken]

    def sampled(self, scale: Tensor) -> Tensor:
        """The sampled entries of a tensor of the logical scale's shape."""
        return scale.reshape(-1)[self.taken]

    @cached_property
    def strict(self) -> bool:
        """Whether nothing differs but the codes of NaN."""
        payload, scale = self.expected
        if not torch.equal(scale, self.scale) or not self.padding:
            return False
        return torch.equal(self._canonical(payload), self._canonical(self.payload))

    def _canonical(self, codes: Tensor) -> Tensor:
        last = self.element.nan_code - 1 if self.element.inf_code is None else self.element.inf_code
        return codes.masked_fill((codes & 0x7F) > last, self.element.nan_code)

    def canonical(self, codes: Tensor) -> Tensor:
        """Every NaN as one code, unless nothing else differs."""
        return codes if self.strict else self._canonical(codes)

    @cached_property
    def all_wrong(self) -> Tensor:
        """Of all blocks, those that differ."""
        payload, scale = self.expected
        wrong = self.canonical(payload) != self.canonical(self.payload)
        return self.all_rows(wrong).any(1) | (scale != self.scale).reshape(-1)

    @cached_property
    def taken(self) -> Tensor:
        """The indices of the sampled blocks, ascending."""
        most = max(SAMPLE // (self.block[0] * self.block[1]), 2)
        count = self.all_wrong.numel()
        if count <= most:
            return torch.arange(count)
        wrong, right = self.all_wrong.nonzero()[:, 0], (~self.all_wrong).nonzero()[:, 0]
        parts = [wrong[:: -(-len(wrong) * 2 // most)] if len(wrong) else wrong]
        if len(right):
            parts.append(right[:: -(-len(right) * 2 // most)])
        return torch.cat(parts).sort().values

    @cached_property
    def wrong(self) -> Tensor:
        """Of the sampled blocks, those that differ."""
        return self.all_wrong[self.taken]

    @cached_property
    def codes(self) -> Tensor:
        """The answer's payload, sampled."""
        return self.canonical(self.rows(self.payload))

    @cached_property
    def bytes(self) -> Tensor:
        """The answer's scale bytes, sampled."""
        return self.sampled(self.scale)

    @cached_property
    def right_codes(self) -> Tensor:
        """The reference's payload, sampled."""
        return self.canonical(self.rows(self.expected[0]))

    @cached_property
    def right_bytes(self) -> Tensor:
        """The reference's scale bytes, sampled."""
        return self.sampled(self.expected[1])

    @cached_property
    def own_codes(self) -> Tensor:
        """The reference's payload under the answer's own scales, sampled; 0 outside of x."""
        block = (1, 32) if 1 in self.block else self.block
        scale = self.bytes.reshape(-1, 1)
        found = quantize(self.sample, self.recipe, block=block, scale=scale)
        return self.canonical(found.payload.view(torch.uint8).reshape(self.codes.shape))

    @cached_property
    def scale_right(self) -> Tensor:
        """Where the scale is the reference's."""
        return self.bytes == self.right_bytes

    @cached_property
    def payload_right(self) -> Tensor:
        """Where the payload is the reference's."""
        return (self.codes == self.right_codes).all(1)

    @cached_property
    def payload_own(self) -> Tensor:
        """Where the payload is right under the answer's own scale."""
        return ((self.codes == self.own_codes) | ~self.inside).all(1)

    @cached_property
    def values(self) -> Tensor:
        """The elements of the sampled blocks in float64, exact."""
        return self.rows(to_float64(self.x))

    @cached_property
    def sample(self) -> Tensor:
        """The sampled blocks of x as a matrix whose blocks they are, in the same order."""
        rows = self.rows(self.x)
        return rows if 1 in self.block else rows.reshape(-1, self.block[1])

    def local(
        self, cause: str, rank: int, x: Tensor | None = None, recipe: Recipe | None = None
    ) -> Finding:
        """What the reference gives for these sampled blocks, under this recipe: block by block."""
        block = (1, 32) if 1 in self.block else self.block
        found = quantize(
            self.sample if x is None else x, self.recipe if recipe is None else recipe, block=block
        )
        codes = self.canonical(found.payload.view(torch.uint8).reshape(self.codes.shape))
        same = ((codes == self.codes) | ~self.inside).all(1)
        scale = found.scale.view(torch.uint8).reshape(-1)
        return Finding(cause, rank, self.bytes == scale, same, self.padding)

    @cached_property
    def inside(self) -> Tensor:
        """Which elements of the sampled blocks lie in x."""
        return self.rows(torch.ones(self.shape, dtype=torch.bool))

    @cached_property
    def all_amax(self) -> Tensor:
        """The fp32 pattern of max|x| of every block, in the logical shape; NaN above Inf."""
        patterns = self.x.to(torch.float32).view(torch.int32) & MAGNITUDE
        return self.all_rows(patterns).amax(1).reshape(self.grid)

    @cached_property
    def amax(self) -> Tensor:
        """The same, sampled."""
        return self.sampled(self.all_amax)

    def rule(self, amax: Tensor) -> Tensor:
        """The scale bytes that the recipe gives these fp32 patterns of amax."""
        distinct, inverse = torch.unique(amax.to(torch.int32), return_inverse=True)
        scale = quantize(distinct.view(torch.float32)[:, None], self.recipe).scale
        return scale.view(torch.uint8)[:, 0][inverse]

    def by_scale(self, cause: str, rank: int, scale: Tensor) -> Finding:
        """The scales are these (sampled); the payload follows them, or is as if they were right."""
        payload = self.payload_own | self.payload_right
        return Finding(cause, rank, self.bytes == scale, payload, self.padding)

    def by_payload(self, cause: str, rank: int, codes: Tensor) -> Finding:
        """The payload is this (sampled), under the answer's own scales, which are right."""
        same = (self.canonical(codes) == self.codes) | ~self.inside
        return Finding(cause, rank, self.scale_right, same.all(1), self.padding)

    def whole(self, cause: str, rank: int, payload: Tensor, scale: Tensor) -> Finding:
        """Payload and logical scale are these, of x's shape and the logical one."""
        codes = self.canonical(self.rows(payload)) == self.codes
        padding = self.same_padding(self.encoded(scale))
        return Finding(cause, rank, self.bytes == self.sampled(scale), codes.all(1), padding)

    def by_blocks(self, cause: str, rank: int, agrees: Tensor) -> Finding:
        """A predicate: which of the sampled blocks are as it says."""
        return Finding(cause, rank, agrees, agrees, self.padding)
