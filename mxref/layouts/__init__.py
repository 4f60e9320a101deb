"""Where scale bytes lie: one file per layout, encode and decode side by side.

=================  ==================================================  =========================
layout             stored shape                                        who reads it
=================  ==================================================  =========================
plain              the logical shape                                   everyone
plain_t            the last two dimensions swapped, contiguous         torchao's dim1 kernel
swizzle_32_4_4     (*lead, Rp * Cp): 128 x 4 tiles, zero padding       cuBLAS, tcgen05
groups             `encode_groups`: one matrix cut along M or K        grouped GEMMs
=================  ==================================================  =========================
"""

from typing import Protocol

import torch
from torch import Tensor

from mxref.blocks import scale_bytes_of
from mxref.layouts import plain, plain_t, swizzle_32_4_4
from mxref.layouts.groups import decode_groups, encode_groups
from mxref.layouts.matrix import require_contract
from mxref.tiles import Block, logical_shape, require_block, require_rank

__all__ = ["LAYOUTS", "decode", "decode_groups", "encode", "encode_groups", "stored_shape"]


class Layout(Protocol):
    """What a layout's file provides; tensors are uint8, `shape` is always the shape of x."""

    needs_contract: bool

    def stored_shape(
        self, shape: tuple[int, ...], block: Block, contract: int | None
    ) -> tuple[int, ...]: ...

    def encode(
        self, scale: Tensor, shape: tuple[int, ...], block: Block, contract: int | None
    ) -> Tensor: ...

    def decode(
        self, stored: Tensor, shape: tuple[int, ...], block: Block, contract: int | None
    ) -> Tensor: ...


LAYOUTS: dict[str, Layout] = {
    module.__name__.rpartition(".")[2]: module for module in (plain, plain_t, swizzle_32_4_4)
}
"""Every layout of one scale tensor, by name."""


def encode(
    scale: Tensor,
    layout: str,
    *,
    block: tuple[int, int] = (1, 32),
    shape: tuple[int, ...] | None = None,
    contract: int | None = None,
) -> Tensor:
    """The scales of `quantize` in a layout, as a new contiguous tensor of scale's dtype.

    Args:
        scale: logical scales, float8_e8m0fnu or uint8.
        layout: "plain", "plain_t" or "swizzle_32_4_4".
        block: the block geometry of the scales.
        shape: the shape of x. Needed only for a swizzled (32, 32), whose rows are x's own.
        contract: -1 or -2, the dimension of x that the GEMM sums over. (1, 32) means -1 and
            (32, 1) means -2; a swizzled (32, 32) needs it said.

    Raises:
        TypeError: scale is no tensor or has a wrong dtype.
        ValueError: unknown layout or block; shape or contract missing or contradicting.

    Source: cuBLAS "1D block scaling factors layout" for the swizzle. Padding is zero bytes.

    >>> scale = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.uint8)
    >>> encode(scale, "plain_t").tolist()
    [[1, 4], [2, 5], [3, 6]]
    >>> encode(scale, "swizzle_32_4_4")[:20].tolist()
    [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 0]
    """
    module, block = _require(layout, block, contract)
    codes = scale_bytes_of(scale)
    require_rank(codes.shape, block, "scale")
    if shape is None:
        if module.needs_contract and block[0] == block[1]:
            raise ValueError(f"shape=None: expected the shape of x for block={block} in {layout!r}")
        # any shape with these scales: the rows that a layout reads are those of the scales
        shape = (*codes.shape[:-1], codes.shape[-1] * block[1])
        if codes.dim() > 1:
            shape = (*codes.shape[:-2], codes.shape[-2] * block[0], shape[-1])
    shape = _require_shape(shape, block)
    expected = logical_shape(shape, block)
    if tuple(codes.shape) != expected:
        raise ValueError(
            f"scale has shape {tuple(codes.shape)}: expected {expected} for shape={shape}, "
            f"block={block}"
        )
    stored = module.encode(codes, shape, block, contract)
    return stored.clone(memory_format=torch.contiguous_format).view(scale.dtype)


def decode(
    stored: Tensor,
    layout: str,
    *,
    block: tuple[int, int] = (1, 32),
    shape: tuple[int, ...],
    contract: int | None = None,
) -> Tensor:
    """The logical scales from a layout: decode(encode(s)) == s, a new contiguous tensor.

    Args:
        stored: float8_e8m0fnu or uint8, any shape with the layout's number of bytes.
        layout: as in `encode`.
        block: as in `encode`.
        shape: the shape of x.
        contract: as in `encode`.

    Raises:
        TypeError: stored is no tensor or has a wrong dtype.
        ValueError: as in `encode`, or a wrong number of bytes.

    >>> stored = torch.tensor([[1, 4], [2, 5], [3, 6]], dtype=torch.uint8)
    >>> decode(stored, "plain_t", shape=(2, 96)).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    module, block = _require(layout, block, contract)
    codes = scale_bytes_of(stored, "stored")
    shape = _require_shape(shape, block)
    expected = module.stored_shape(shape, block, contract)
    numel = torch.Size(expected).numel()
    if codes.numel() != numel:
        raise ValueError(
            f"stored has {codes.numel()} bytes: expected {numel}, shape {expected}, for "
            f"shape={shape}, block={block} in {layout!r}"
        )
    scale = module.decode(codes.reshape(expected), shape, block, contract)
    return scale.clone(memory_format=torch.contiguous_format).view(stored.dtype)


def stored_shape(
    shape: tuple[int, ...],
    layout: str,
    *,
    block: tuple[int, int] = (1, 32),
    contract: int | None = None,
) -> tuple[int, ...]:
    """The shape of what `encode` returns for a tensor x of this shape.

    >>> stored_shape((100, 90), "swizzle_32_4_4")
    (512,)
    """
    module, block = _require(layout, block, contract)
    return module.stored_shape(_require_shape(shape, block), block, contract)


def _require(layout: str, block: Block, contract: int | None) -> tuple[Layout, Block]:
    expected = ", ".join(map(repr, LAYOUTS))
    if not isinstance(layout, str):
        got = type(layout).__name__
        raise TypeError(f"layout={layout!r}: expected one of {expected}, got {got}")
    if layout not in LAYOUTS:
        raise ValueError(f"layout={layout!r}: expected one of {expected}")
    block = require_block(block)
    module = LAYOUTS[layout]
    if module.needs_contract or contract is not None:
        # a square block in a layout that ignores it may be given either direction
        require_contract(contract, block, layout)
    return module, block


def _require_shape(shape: tuple[int, ...], block: Block) -> tuple[int, ...]:
    if not isinstance(shape, (tuple, list)) or any(
        type(size) is not int or not 0 <= size < 1 << 62 for size in shape
    ):
        raise ValueError(f"shape={shape!r}: expected the shape of x, non-negative ints")
    require_rank(tuple(shape), block, "shape")
    return tuple(shape)
