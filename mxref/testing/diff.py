"""Two answers, byte by byte: the first block in which they differ, in bits."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mxref.formats import ElementFormat
from mxref.layouts import decode
from mxref.testing.answer import Answer
from mxref.testing.arrange import tile_of
from mxref.testing.cases import distinct
from mxref.testing.claims import INPUT_FORMATS, Claims
from mxref.testing.report import BlockBytes
from mxref.tiles import logical_shape


@dataclass(frozen=True)
class Difference:
    """The first wrong block. `block_index` is empty where only padding bytes are wrong."""

    message: str
    block_index: tuple[int, ...] = ()
    input_bits: tuple[int, ...] = ()
    expected: BlockBytes | None = None
    actual: BlockBytes | None = None


def first_difference(
    x: Tensor, actual: Answer, expected: Answer, claims: Claims
) -> Difference | None:
    """None if the bytes are the same (NaN codes as `claims.nan` says), else where they part.

    The first block in row-major order of the logical scale. Payloads are compared by logical
    index, whatever their strides.
    """
    scale_equal = torch.equal(actual.scale, expected.scale)
    if scale_equal and torch.equal(actual.payload, expected.payload):
        return None
    wrong = payload_differs(actual.payload, expected.payload, claims)
    if scale_equal and not bool(wrong.any()):
        return None
    scales = [logical(answer.scale, tuple(x.shape), claims) for answer in (actual, expected)]
    blocks = _wrong_blocks(wrong, scales[0] != scales[1], claims)
    if not blocks.numel():
        return _stored_difference(actual.scale, expected.scale)
    index = tuple(int(i) for i in torch.unravel_index(blocks[0], scales[0].shape))
    found, wanted = (
        BlockBytes(int(scale[index]), tuple(_flat(tile_of(answer.payload, index, claims.block))))
        for scale, answer in zip(scales, (actual, expected), strict=True)
    )
    where = _flat(tile_of(wrong, index, claims.block))
    message = _block_message(found, wanted, where)
    if blocks.numel() > 1:
        message += f" ({blocks.numel()} of {scales[0].numel()} blocks differ)"
    return Difference(message, index, bits_of(tile_of(x, index, claims.block)), wanted, found)


def bits_of(x: Tensor) -> tuple[int, ...]:
    """The bit patterns of the elements of x, row by row, as non-negative integers."""
    fmt = INPUT_FORMATS[x.dtype]
    integer = torch.int32 if fmt.bits == 32 else torch.int16
    patterns = x.detach().contiguous().view(integer).to(torch.int64) & ((1 << fmt.bits) - 1)
    return tuple(_flat(patterns))


def is_nan_code(codes: Tensor, element: ElementFormat) -> Tensor:
    """Which payload bytes are NaN."""
    last_number = element.nan_code - 1 if element.inf_code is None else element.inf_code
    return (codes & 0x7F) > last_number


def payload_differs(actual: Tensor, expected: Tensor, claims: Claims) -> Tensor:
    """Which payload bytes differ; any NaN code equals any other unless the claims are strict."""
    wrong = actual != expected
    if claims.nan == "any":
        both = is_nan_code(actual, claims.element) & is_nan_code(expected, claims.element)
        wrong &= ~both
    return wrong


def logical(stored: Tensor, shape: tuple[int, ...], claims: Claims) -> Tensor:
    """Stored scale bytes in the logical shape of the scales of an x of this shape."""
    return decode(
        stored, claims.scale_layout, block=claims.block, shape=shape, contract=claims.contract
    )


def _wrong_blocks(payload_wrong: Tensor, scale_wrong: Tensor, claims: Claims) -> Tensor:
    """The flat indices (into the logical scale) of the blocks that differ, ascending."""
    elements = payload_wrong.nonzero()
    elements[:, -1] //= claims.block[1]
    if payload_wrong.dim() > 1:
        elements[:, -2] //= claims.block[0]
    flat = elements.new_zeros(elements.shape[0])
    for dim, size in enumerate(logical_shape(tuple(payload_wrong.shape), claims.block)):
        flat = flat * size + elements[:, dim]
    return distinct(torch.cat([flat, scale_wrong.reshape(-1).nonzero()[:, 0]]))


def _block_message(actual: BlockBytes, expected: BlockBytes, where: list[int]) -> str:
    if actual.scale != expected.scale:
        return f"scale 0x{actual.scale:02X}, expected 0x{expected.scale:02X}"
    at = where.index(True)
    found, wanted = actual.payload[at], expected.payload[at]
    return f"payload[{at}] 0x{found:02X}, expected 0x{wanted:02X}"


def _stored_difference(actual: Tensor, expected: Tensor) -> Difference:
    """Every logical scale is right: what differs is padding, or a byte that repeats one."""
    offsets = (actual != expected).nonzero()
    at = int(offsets[0])
    return Difference(
        f"stored scale byte {at} 0x{int(actual[at]):02X}, expected 0x{int(expected[at]):02X}: "
        f"padding or a repeated byte ({offsets.shape[0]} of {expected.numel()} bytes differ)"
    )


def _flat(tile: Tensor) -> list[int]:
    values: list[int] = tile.reshape(-1).tolist()
    return values
