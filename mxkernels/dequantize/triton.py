"""The Triton kernel that turns payload and scale back into values, and its launch.

A program takes a tile of a matrix as it lies in memory: rows at a stride, columns of stride 1. A
scale serves 32 neighbours of a row ("along"), 32 of a column ("across") or both (a square, read as
"along" with one row of scales for 32). Payload and values lie alike, so a column-major payload is
the same kernel on the transposed matrix. One multiplier is made for each scale, not each element.

e4m3 has 4 significant bits: the product with 2^(byte - 127) is exact in fp32 or a signed Inf, and
only the subnormals of the output are ever rounded.
"""
# ruff: noqa: N803, RET505 - constexpr arguments are capitals; the compiler drops an untaken else.

import torch
import triton
import triton.language as tl

from mxkernels import arch
from mxkernels.dequantize.configs import DEQUANTIZE, DequantizeConfig, interpreted
from mxkernels.dequantize.shapes import Task

DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
BITS = {torch.bfloat16: torch.int16, torch.float16: torch.int16, torch.float32: torch.int32}
TWO_TO_THE_120 = tl.constexpr(2.0**120)


@triton.jit
def e4m3_value(code, HARDWARE: tl.constexpr):
    """The fp32 value of an e4m3 code (uint8), exactly; NaN for 0x7F and 0xFF."""
    if HARDWARE:
        return code.to(tl.float8e4nv, bitcast=True).to(tl.float32)
    else:
        # Sign-extended and shifted by 20, a code has its sign, exponent and mantissa where fp32
        # has them (the mask is 0x87F00000); the product moves the bias, subnormals included.
        wide = (code.to(tl.int8, bitcast=True).to(tl.int32) << 20) & -0x78100000
        value = wide.to(tl.float32, bitcast=True) * TWO_TO_THE_120
        return tl.where((code & 0x7F) == 0x7F, float("nan"), value)


@triton.jit
def scale_value(byte):
    """2^(byte - 127) for bytes 0..254, byte 0 a subnormal; NaN for 255."""
    bits = tl.maximum(byte.to(tl.int32) << 23, 0x00400000)
    return tl.where(byte == 255, 0x7FC00000, bits).to(tl.float32, bitcast=True)


@triton.jit
def value_bits(value, DTYPE: tl.constexpr, HARDWARE: tl.constexpr):
    """The pattern of an fp32 value in DTYPE, to nearest even; every NaN is the canonical one."""
    nan = value != value
    if DTYPE == "fp32":
        return tl.where(nan, 0x7FC00000, value.to(tl.int32, bitcast=True))
    elif DTYPE == "fp16":
        return tl.where(nan, 0x7E00, value.to(tl.float16).to(tl.int16, bitcast=True))
    else:
        if HARDWARE:
            bits = value.to(tl.bfloat16).to(tl.int16, bitcast=True)
        else:
            wide = value.to(tl.int32, bitcast=True)
            bits = ((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).to(tl.int16)
        return tl.where(nan, 0x7FC0, bits)


@triton.jit
def scale_offset(row, column, row_step, column_step, LAYOUT: tl.constexpr, SQUARE: tl.constexpr):
    """Where the scale of (row, column) is; both count scales, but a row of "along" and SQUARE.

    LAYOUT: "strided"; "inner" and "outer", swizzled, with row_step tiles side by side, for a GEMM
    that sums over the columns of the matrix in memory or over its rows.
    """
    if LAYOUT == "strided":
        if SQUARE:
            row = row >> 5
        return row * row_step + column * column_step
    else:
        if SQUARE:
            # Of the 32 copies of a square's scale the first is read.
            if LAYOUT == "inner":
                r, c = row & -32, column
            else:
                r, c = column * 32, row >> 5
        else:
            if LAYOUT == "inner":
                r, c = row, column
            else:
                r, c = column, row
        tile = (r >> 7) * row_step + (c >> 2)
        return tile * 512 + (r & 31) * 16 + ((r >> 5) & 3) * 4 + (c & 3)


@triton.jit
def dequantize_tiles(
    payload_ptr,
    scale_ptr,
    values_ptr,
    rows,
    columns,
    row_stride,
    matrix_stride,
    scale_row,
    scale_column,
    scale_matrix,
    across,
    ALONG: tl.constexpr,
    SQUARE: tl.constexpr,
    SINGLE: tl.constexpr,
    LAYOUT: tl.constexpr,
    EVEN: tl.constexpr,
    DTYPE: tl.constexpr,
    HARDWARE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """values[m, r, c] = payload[m, r, c] * 2^(scale - 127), `across` programs side by side.

    EVEN: tiles cover the matrix exactly. SINGLE: one matrix. VECTOR: the most codes that a thread
    loads at once.
    """
    program = tl.program_id(0)
    line = program // across
    first_column = (program % across).to(tl.int64) * COLUMNS
    if SINGLE:
        first_row = line.to(tl.int64) * ROWS
    else:
        down = (rows + ROWS - 1) // ROWS
        first_row = (line % down).to(tl.int64) * ROWS
        matrix = (line // down).to(tl.int64)
        scale_ptr += matrix * scale_matrix
        payload_ptr += matrix * matrix_stride
        values_ptr += matrix * rows * columns
    if ALONG:
        row = (first_row + tl.arange(0, ROWS))[:, None, None]
        unit = tl.arange(0, COLUMNS // 32)[None, :, None]
        column = first_column + (unit * 32 + tl.arange(0, 32)[None, None, :])
        scale_r, scale_c = row, (first_column >> 5) + unit
        inside = (row < rows) & (scale_c * 32 < columns)
    else:
        unit = tl.arange(0, ROWS // 32)[:, None, None]
        row = first_row + (unit * 32 + tl.arange(0, 32)[None, :, None])
        column = (first_column + tl.arange(0, COLUMNS))[None, None, :]
        scale_r, scale_c = (first_row >> 5) + unit, column
        inside = (scale_r * 32 < rows) & (column < columns)
    place = scale_offset(scale_r, scale_c, scale_row, scale_column, LAYOUT, SQUARE)
    source = tl.max_contiguous(row * row_stride + column, [1, 1, VECTOR])
    target = row * columns + column
    if EVEN:
        byte = tl.load(scale_ptr + place)
        code = tl.load(payload_ptr + source)
    else:
        byte = tl.load(scale_ptr + place, mask=inside, other=0)
        mask = (row < rows) & (column < columns)
        code = tl.load(payload_ptr + source, mask=mask, other=0)
    bits = value_bits(e4m3_value(code, HARDWARE) * scale_value(byte), DTYPE, HARDWARE)
    if EVEN:
        tl.store(values_ptr + target, bits)
    else:
        tl.store(values_ptr + target, bits, mask=mask)


def launch(
    payload: torch.Tensor,
    scale: torch.Tensor,
    values: torch.Tensor,
    task: Task,
    config: DequantizeConfig | None = None,
) -> None:
    """Write `values` (contiguous in memory) of `payload`, uint8 (matrices, rows, columns).

    `scale` is contiguous uint8; `task` says where its bytes lie.
    """
    if not payload.numel():
        return
    config = config or (DEQUANTIZE[0] if payload.is_cuda else interpreted(task))
    rows, columns = task.rows, task.columns
    # A flat row is one block, so the tile is one line of memory.
    width = 32 if task.flat else config.columns
    height = config.rows * config.columns // width if task.flat else config.rows
    across, down = -(-columns // width), -(-rows // height)
    arguments = (
        payload,
        scale,
        values.view(BITS[values.dtype]),
        rows,
        columns,
        task.row_stride,
        task.matrix_stride,
        task.scale_row,
        task.scale_column,
        task.scale_matrix,
        across,
        task.along,
        task.square,
        task.matrices == 1,
        task.layout,
        rows % height == 0 and columns % width == 0,
        DTYPES[values.dtype],
        arch.hardware_e4m3(payload.device),
        height,
        width,
        config.vector,
    )
    grid = (task.matrices * down * across,)
    if not payload.is_cuda or payload.device.index == torch.cuda.current_device():
        dequantize_tiles[grid](*arguments, num_warps=config.warps)
    else:
        with torch.cuda.device(payload.device):
            dequantize_tiles[grid](*arguments, num_warps=config.warps)
