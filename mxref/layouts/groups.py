"""Groups of one scale matrix S[R, C], each swizzled on its own, as grouped GEMMs read them.

`offs` holds the exclusive end of each group: int32, non-decreasing; groups may be empty, and what
lies beyond the last end is not read. M groups cut rows of S: group g starts at output row
sum over h < g of 128 * ceil(size_h / 128); the result is (R + 128 * G, Cp). K groups cut columns
of S: group g starts at flat offset Rp * (sum over h < g of 4 * ceil(size_h / 4)) and has its own
padded width; the result is (Rp, C + 4 * G). Every other byte is zero.
"""

import torch
from torch import Tensor

from mxref.blocks import scale_bytes_of
from mxref.layouts.swizzle_32_4_4 import padded, swizzle, unswizzle

AXES = ("M", "K")


def encode_groups(scale: Tensor, offs: Tensor, *, axis: str) -> Tensor:
    """S[R, C] (float8_e8m0fnu or uint8) to the grouped layout; the result has S's dtype.

    Raises TypeError or ValueError that names the argument: scale not 2-D, offs not int32, 1-D,
    non-decreasing within S, axis not "M" or "K". Reads offs on the host.

    >>> scale = torch.arange(1, 7, dtype=torch.uint8).reshape(2, 3)
    >>> encode_groups(scale, torch.tensor([1, 2], dtype=torch.int32), axis="M").shape
    torch.Size([258, 4])
    """
    codes = scale_bytes_of(scale)
    if codes.dim() != 2:
        raise ValueError(f"scale has shape {tuple(scale.shape)}: expected two dimensions")
    shape = (codes.shape[0], codes.shape[1])
    ends = _require_ends(offs, axis, shape)
    out = codes.new_zeros(_stored_shape(shape, len(ends), axis))
    flat = out.view(-1)
    for (first, last), place in _groups(shape, ends, axis):
        group = codes[first:last] if axis == "M" else codes[:, first:last]
        stored = swizzle(group)
        flat[place : place + stored.numel()] = stored
    return out.view(scale.dtype)


def decode_groups(stored: Tensor, offs: Tensor, *, axis: str, shape: tuple[int, int]) -> Tensor:
    """The inverse of `encode_groups`: S of this shape (R, C); what no group covers is 0.

    Raises as `encode_groups`, and ValueError where `stored` has a wrong number of bytes.

    >>> scale = torch.arange(1, 7, dtype=torch.uint8).reshape(2, 3)
    >>> offs = torch.tensor([1, 2], dtype=torch.int32)
    >>> decode_groups(encode_groups(scale, offs, axis="K"), offs, axis="K", shape=(2, 3)).tolist()
    [[1, 2, 0], [4, 5, 0]]
    """
    codes = scale_bytes_of(stored, "stored")
    if (
        not isinstance(shape, (tuple, list))
        or len(shape) != 2
        or any(type(size) is not int or not 0 <= size < 1 << 62 for size in shape)
    ):
        raise ValueError(f"shape={shape!r}: expected (R, C), the shape of the scale matrix")
    ends = _require_ends(offs, axis, (shape[0], shape[1]))
    expected = _stored_shape((shape[0], shape[1]), len(ends), axis)
    if codes.numel() != expected[0] * expected[1]:
        raise ValueError(
            f"stored has {codes.numel()} bytes: expected {expected[0] * expected[1]}, "
            f"shape {expected}"
        )
    flat = codes.reshape(-1)
    out = codes.new_zeros(shape)
    for (first, last), place in _groups((shape[0], shape[1]), ends, axis):
        group = out[first:last] if axis == "M" else out[:, first:last]
        rows, columns = padded(group.shape[0], group.shape[1])
        group.copy_(unswizzle(flat[place : place + rows * columns], *group.shape))
    return out.view(stored.dtype)


def _require_ends(offs: Tensor, axis: str, shape: tuple[int, int]) -> list[int]:
    if axis not in AXES:
        raise ValueError(f"axis={axis!r}: expected one of 'M', 'K'")
    if not isinstance(offs, Tensor):
        raise TypeError(f"offs={offs!r}: expected a tensor, got {type(offs).__name__}")
    if offs.is_meta or offs.layout is not torch.strided:
        raise TypeError(f"offs={offs!r}: expected a strided tensor that holds its values")
    if offs.dtype != torch.int32:
        raise TypeError(f"offs has dtype {offs.dtype}: expected torch.int32")
    if offs.dim() != 1 or offs.numel() == 0:
        raise ValueError(f"offs has shape {tuple(offs.shape)}: expected (G,) with G >= 1")
    ends: list[int] = offs.tolist()
    size = shape[0] if axis == "M" else shape[1]
    if ends != sorted(ends) or ends[0] < 0 or ends[-1] > size:
        raise ValueError(f"offs={ends}: expected non-decreasing ends from 0 to {size}")
    return ends


def _stored_shape(shape: tuple[int, int], groups: int, axis: str) -> tuple[int, int]:
    rows, columns = padded(*shape)
    return (shape[0] + 128 * groups, columns) if axis == "M" else (rows, shape[1] + 4 * groups)


def _groups(
    shape: tuple[int, int], ends: list[int], axis: str
) -> list[tuple[tuple[int, int], int]]:
    """For each group its half-open range in S and where its bytes start."""
    rows, columns = padded(*shape)
    found, first, place = [], 0, 0
    for last in ends:
        found.append(((first, last), place))
        height, width = padded(last - first, last - first)
        size = height * columns if axis == "M" else rows * width
        first, place = last, place + size
    return found
