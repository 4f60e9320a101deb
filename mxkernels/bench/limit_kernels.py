"""The Triton kernels that do a quantizer's memory traffic and nothing else: no amax, no scale.

Each is as fast as we can make it and is what a quantizer is measured against. Inputs and outputs
are integer views, as in the quantizers, and the element cast is the same device function. The
launches return new tensors, like the quantizers, so both pay for allocation alike.
"""
# ruff: noqa: N803 - constexpr arguments are capitals.

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from mxkernels import arch

from ..device import cast_e4m3, to_float32  # noqa: TID252

DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
BITS = {torch.bfloat16: torch.int16, torch.float16: torch.int16, torch.float32: torch.int32}


class FlatConfig(NamedTuple):
    """Neighbouring elements for one program, and its warps."""

    elements: int
    warps: int


class TileConfig(NamedTuple):
    """A tile for one program, its warps, and which tiles come one after another."""

    rows: int
    columns: int
    warps: int
    rows_first: bool = True


@triton.jit
def stream_cast(
    x_ptr,
    out_ptr,
    numel,
    DTYPE: tl.constexpr,
    HARDWARE: tl.constexpr,
    EVEN: tl.constexpr,
    ELEMENTS: tl.constexpr,
):
    """out[i] = e4m3(x[i]), saturating. EVEN: programs cover the tensor exactly."""
    first = tl.program_id(0).to(tl.int64) * ELEMENTS
    lanes = tl.arange(0, ELEMENTS)
    mask = None if EVEN else first + lanes < numel
    x = tl.load(x_ptr + first + lanes, mask=mask)
    tl.store(out_ptr + first + lanes, cast_e4m3(to_float32(x, DTYPE), HARDWARE), mask=mask)


@triton.jit
def transpose_cast(
    x_ptr,
    row_ptr,
    col_ptr,
    rows,
    columns,
    DTYPE: tl.constexpr,
    HARDWARE: tl.constexpr,
    EVEN: tl.constexpr,
    DUAL: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS_FIRST: tl.constexpr,
):
    """col[e, k, m] = e4m3(x[e, m, k]), and row[e, m, k] as well where DUAL."""
    tile = tl.program_id(0)
    if ROWS_FIRST:
        across = (rows + ROWS - 1) // ROWS  # tl.cdiv is out of the interpreter's reach
        row, column = (tile % across) * ROWS, (tile // across) * COLUMNS
    else:
        across = (columns + COLUMNS - 1) // COLUMNS
        row, column = (tile // across) * ROWS, (tile % across) * COLUMNS
    matrix = tl.program_id(1).to(tl.int64) * rows * columns
    source = matrix + row.to(tl.int64) * columns + column
    target = matrix + column.to(tl.int64) * rows + row
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    mask = None if EVEN else (row + r < rows)[:, None] & (column + c < columns)[None, :]
    mask_t = None if EVEN else (column + c < columns)[:, None] & (row + r < rows)[None, :]
    x = to_float32(tl.load(x_ptr + source + r[:, None] * columns + c[None, :], mask=mask), DTYPE)
    codes = cast_e4m3(x, HARDWARE)
    if DUAL:
        tl.store(row_ptr + source + r[:, None] * columns + c[None, :], codes, mask=mask)
    tl.store(col_ptr + target + c[:, None] * rows + r[None, :], tl.trans(codes), mask=mask_t)


@triton.jit
def widen_e4m3(
    codes_ptr, out_ptr, numel, HARDWARE: tl.constexpr, EVEN: tl.constexpr, ELEMENTS: tl.constexpr
):
    """The bf16 pattern of each e4m3 code; every code but NaN is exact."""
    first = tl.program_id(0).to(tl.int64) * ELEMENTS
    lanes = tl.arange(0, ELEMENTS)
    mask = None if EVEN else first + lanes < numel
    codes = tl.load(codes_ptr + first + lanes, mask=mask)
    if HARDWARE:
        bits = codes.to(tl.float8e4nv, bitcast=True).to(tl.bfloat16).to(tl.int16, bitcast=True)
    else:
        size = codes.to(tl.int32) & 0x7F
        tiny = (size.to(tl.float32) * 0.001953125).to(tl.int32, bitcast=True)
        wide = tl.where(size < 8, tiny, (size << 20) + (120 << 23))
        wide = tl.where(size == 0x7F, 0x7FC00000, wide) | ((codes.to(tl.int32) & 0x80) << 24)
        bits = (wide >> 16).to(tl.int16)
    tl.store(out_ptr + first + lanes, bits, mask=mask)


def stream(x: torch.Tensor, config: FlatConfig) -> torch.Tensor:
    """The e4m3 codes (uint8) of contiguous `x`, in its own order."""
    out = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    numel, size = x.numel(), config.elements
    stream_cast[(triton.cdiv(numel, size),)](
        x.view(BITS[x.dtype]),
        out,
        numel,
        DTYPES[x.dtype],
        arch.hardware_e4m3(x.device),
        numel % size == 0,
        size,
        num_warps=config.warps,
    )
    return out


def transpose(x: torch.Tensor, config: TileConfig) -> torch.Tensor:
    """The codes of contiguous `x` (..., M, K) written as contiguous (..., K, M)."""
    out = torch.empty((*x.shape[:-2], x.shape[-1], x.shape[-2]), dtype=torch.uint8, device=x.device)
    _launch_tiles(x, out, out, config, dual=False)
    return out


def dual(x: torch.Tensor, config: TileConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """The codes of `x` in its own order and transposed, from one read."""
    row = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    col = row.new_empty((*x.shape[:-2], x.shape[-1], x.shape[-2]))
    _launch_tiles(x, row, col, config, dual=True)
    return row, col


def _launch_tiles(
    x: torch.Tensor, row: torch.Tensor, col: torch.Tensor, config: TileConfig, *, dual: bool
) -> None:
    rows, columns = x.shape[-2:]
    if 128 * max(rows, columns) >= 2**31:
        raise ValueError(f"x has shape {tuple(x.shape)}: offsets inside a tile need int32")
    tiles = triton.cdiv(rows, config.rows) * triton.cdiv(columns, config.columns)
    transpose_cast[(tiles, x.numel() // (rows * columns))](
        x.view(BITS[x.dtype]),
        row,
        col,
        rows,
        columns,
        DTYPES[x.dtype],
        arch.hardware_e4m3(x.device),
        rows % config.rows == 0 and columns % config.columns == 0,
        dual,
        config.rows,
        config.columns,
        config.rows_first,
        num_warps=config.warps,
    )


def widen(codes: torch.Tensor, config: FlatConfig) -> torch.Tensor:
    """The bf16 values of contiguous e4m3 `codes` (uint8)."""
    out = torch.empty(codes.shape, dtype=torch.bfloat16, device=codes.device)
    numel, size = codes.numel(), config.elements
    widen_e4m3[(triton.cdiv(numel, size),)](
        codes,
        out.view(torch.int16),
        numel,
        arch.hardware_e4m3(codes.device),
        numel % size == 0,
        size,
        num_warps=config.warps,
    )
    return out


FLAT = (FlatConfig(2048, 4), FlatConfig(4096, 4), FlatConfig(4096, 8), FlatConfig(8192, 8))
WIDEN = (FlatConfig(1024, 4), *FLAT[:3])
TILES = (
    TileConfig(64, 128, 2),
    TileConfig(64, 128, 4),
    TileConfig(64, 64, 2),
    TileConfig(128, 64, 2),
    TileConfig(128, 64, 4, rows_first=False),
    TileConfig(128, 128, 4),
)
