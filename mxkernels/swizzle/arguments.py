"""Checks of scales, shapes, directions and ends: errors name the argument and what is allowed."""

from collections.abc import Sequence

import torch

from mxkernels.arguments import one_of
from mxkernels.swizzle.shapes import (
    AXES,
    SWIZZLE,
    grouped_shape,
    logical_shape,
    stored_shape,
)
from mxref.shown import shown

SCALE_DTYPES = (torch.float8_e8m0fnu, torch.uint8)


def tensor(name: str, value: object, dtypes: Sequence[torch.dtype]) -> torch.Tensor:
    """`value`, if it is a strided tensor of one of these dtypes; TypeError otherwise."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name}={shown(value)}: expected a tensor, got {type(value).__name__}")
    if value.layout != torch.strided:
        raise TypeError(f"{name} has layout {value.layout}: expected torch.strided")
    if value.dtype not in dtypes:
        allowed = " or ".join(map(str, dtypes))
        raise TypeError(f"{name} has dtype {value.dtype}: expected {allowed}")
    return value.detach()


def rank(name: str, shape: Sequence[int], block: tuple[int, int]) -> None:
    """ValueError where `shape` has too few dimensions for the block."""
    least = 1 if block[0] == 1 else 2
    if len(shape) < least:
        raise ValueError(
            f"{name} has shape {tuple(shape)}: block={block} needs rank {least} or more"
        )


def direction(contract: object, block: tuple[int, int], layout: str) -> int:
    """The dimension a GEMM sums over, -1 or -2; 0 where nothing depends on it and none is named."""
    if contract is not None and not (isinstance(contract, int) and contract in (-1, -2)):
        raise ValueError(f"contract={contract!r}: expected -1, -2 or None")
    if block[0] == block[1]:
        if contract is None and layout == SWIZZLE:
            raise ValueError(f"contract=None: expected -1 or -2 for block={block} in {layout!r}")
        return contract or 0
    fixed = -1 if block[0] == 1 else -2
    if contract not in (None, fixed):
        raise ValueError(f"contract={contract!r}: block={block} contracts {fixed}")
    return fixed


def x_shape(shape: object, block: tuple[int, int]) -> tuple[int, ...]:
    """`shape` as the shape of an x with such blocks; ValueError otherwise."""
    if not isinstance(shape, tuple | list) or any(
        not isinstance(size, int | torch.SymInt) or size < 0 for size in shape
    ):
        raise ValueError(f"shape={shape!r}: expected the shape of x, non-negative ints")
    rank("shape", shape, block)
    return tuple(shape)


def logical(
    scale: torch.Tensor, layout: str, block: tuple[int, int], shape: object
) -> tuple[int, ...]:
    """The shape of x for these logical scales: `shape`, or the largest one where it is None."""
    rank("scale", scale.shape, block)
    if shape is None:
        if block[0] == block[1] and layout == SWIZZLE:
            raise ValueError(f"shape=None: expected the shape of x for block={block} in {layout!r}")
        columns = scale.shape[-1] * block[1]
        if scale.dim() == 1:
            return (columns,)
        return (*scale.shape[:-2], scale.shape[-2] * block[0], columns)
    sizes = x_shape(shape, block)
    expected = logical_shape(sizes, block)
    if tuple(scale.shape) != expected:
        raise ValueError(
            f"scale has shape {tuple(scale.shape)}: expected {expected} for shape={sizes}, "
            f"block={block}"
        )
    return sizes


def stored_bytes(name: str, stored: torch.Tensor, expected: tuple[int, ...], words: str) -> None:
    """ValueError where `stored` has not as many bytes as `expected`, a shape."""
    count = torch.Size(expected).numel()
    if stored.numel() != count:
        raise ValueError(
            f"{name} has {stored.numel()} bytes: expected {count}, shape {expected}, for {words}"
        )


def stored_scale(
    name: str,
    stored: torch.Tensor,
    layout: str,
    block: tuple[int, int],
    shape: tuple[int, ...],
    contract: int,
) -> None:
    """ValueError where `stored` has not as many bytes as the scales of such an x."""
    expected = stored_shape(shape, layout, block, contract)
    stored_bytes(name, stored, expected, f"shape={shape}, block={block} in {layout!r}")


def ends(offs: object, axis: object, device: torch.device) -> torch.Tensor:
    """`offs`, if it can be the ends of groups along `axis`; its values are not looked at."""
    if axis not in AXES:
        raise ValueError(f"axis={axis!r}: expected one of 'M', 'K' with offs")
    found = tensor("offs", offs, (torch.int32,))
    if found.dim() != 1 or found.shape[0] == 0:
        raise ValueError(f"offs has shape {tuple(found.shape)}: expected (G,) with G >= 1")
    if found.device != device:
        raise ValueError(f"offs is on {found.device}: expected {device}, where the scales are")
    return found


def group_only(layout: str, block: tuple[int, int], contract: object) -> None:
    """ValueError for what groups have no choice of: they cut S itself, and are swizzled."""
    if layout != SWIZZLE:
        raise ValueError(f"layout={layout!r}: expected {SWIZZLE!r} with offs")
    if block != (1, 32):
        raise ValueError(f"block={block}: expected (1, 32) with offs, which cut the matrix S[R, C]")
    if contract not in (None, -1):
        raise ValueError(f"contract={contract!r}: expected None or -1 with offs")


def group_shape(shape: object) -> tuple[int, int]:
    """`shape` as (R, C), the shape of S; ValueError otherwise."""
    if (
        not isinstance(shape, tuple | list)
        or len(shape) != 2
        or any(not isinstance(size, int | torch.SymInt) or size < 0 for size in shape)
    ):
        raise ValueError(f"shape={shape!r}: expected (R, C), the shape of the scale matrix")
    return shape[0], shape[1]


def grouped_bytes(stored: torch.Tensor, shape: tuple[int, int], groups: int, axis: str) -> None:
    """ValueError where `stored` has not as many bytes as S of this shape in so many groups."""
    expected = grouped_shape(shape, groups, axis)
    stored_bytes("stored", stored, expected, f"shape={shape}, {groups} groups along {axis!r}")


def no_axis(axis: object) -> None:
    """ValueError for an axis without ends."""
    if axis is not None:
        raise ValueError(f"axis={axis!r}: expected None without offs")


def backend_name(backend: object, on: torch.Tensor) -> str:
    """ "triton" or "reference"; NotImplementedError for another back end that exists."""
    from mxkernels.registry import BACKENDS  # registry imports this package

    one_of("backend", backend, BACKENDS)
    if backend == "auto":
        return "triton" if on.is_cuda else "reference"
    if backend not in ("triton", "reference"):
        raise NotImplementedError(
            f"backend={backend!r} is not built here: 'triton', 'reference' are"
        )
    return backend
