"""The Triton kernel for blocks along the last dimension, and its launch.

A tile is [BLOCKS, 32], one row for each block of the tensor in logical order, so the scale of row
b is byte b. A thread holds 16 neighbouring elements: two 16-byte loads of 16-bit inputs, one
16-byte store of payload, and amax needs one exchange between two threads.
"""
# ruff: noqa: N803 - constexpr arguments are capitals.

import torch
import triton
import triton.language as tl

from mxkernels import arch
from mxkernels.quantize.configs import FlatConfig, flat_default
from mxkernels.quantize.plan import DTYPES, Launch, compile_options

from ..device import (  # noqa: TID252
    largest,
    magnitude,
    multiplier,
    scale_byte,
    scaled_payload,
    to_float32,
)


@triton.jit(do_not_specialize=["n_blocks", "row_blocks"])
def quantize_1x32(
    x_ptr,
    payload_ptr,
    scale_ptr,
    n_blocks,
    row_blocks,
    columns,
    row_stride,
    RULE: tl.constexpr,
    DTYPE: tl.constexpr,
    LAYOUT: tl.constexpr,
    HARDWARE: tl.constexpr,
    BLOCKS: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """Quantize rows of `columns` elements, `row_stride` apart, each in `row_blocks` blocks.

    LAYOUT: "flat", blocks follow one another; "whole", rows are whole blocks at a stride;
    "ragged", the last block of a row is partial.
    """
    first = tl.program_id(0).to(tl.int64) * BLOCKS
    rows = tl.arange(0, BLOCKS)
    lanes = tl.max_contiguous(tl.arange(0, 32), VECTOR)
    inside = rows < tl.minimum(n_blocks - first, BLOCKS).to(tl.int32)
    # Offsets inside a tile fit int32 when the tensor is flat; rows at a stride may not.
    if LAYOUT == "flat":
        x_ptr += first * 32
        payload_ptr += first * 32
        source = rows[:, None] * 32 + lanes[None, :]
        target = source
        mask = inside[:, None]
    else:
        block = first + rows
        row = block // row_blocks
        column = ((block - row * row_blocks) * 32)[:, None] + lanes[None, :]
        source = row[:, None] * row_stride + column
        target = row[:, None] * columns + column
        mask = inside[:, None]
        if LAYOUT == "ragged":
            mask = mask & (column < columns)
    x = to_float32(tl.load(x_ptr + source, mask=mask, other=0), DTYPE)
    byte = scale_byte(largest(magnitude(x), 1), RULE)
    codes = scaled_payload(x, multiplier(byte)[:, None], HARDWARE)
    tl.store(payload_ptr + target, codes, mask=mask)
    tl.store(scale_ptr + first + rows, byte.to(tl.uint8), mask=inside)


def prepare(
    rows: torch.Tensor, scale: torch.Tensor, rule: str, config: FlatConfig | None = None
) -> Launch:
    """The launch that quantizes a matrix whose last stride is 1 into two contiguous buffers."""
    n_blocks = scale.numel()
    config = config or flat_default(n_blocks, interpret=rows.device.type == "cpu")
    columns, row_stride = rows.shape[1], rows.stride(0)
    if columns % 32:
        layout = "ragged"
    elif rows.shape[0] > 1 and row_stride != columns:
        layout = "whole"
    else:
        # Nothing of the rows is left to the kernel: constants keep it from being compiled anew.
        layout, columns, row_stride = "flat", 32, 32
    arguments = (
        n_blocks,
        (columns + 31) // 32,
        columns,
        row_stride,
        rule,
        DTYPES[rows.dtype],
        layout,
        arch.hardware_e4m3(rows.device),
        config.blocks,
        config.vector,
    )
    grid = (triton.cdiv(n_blocks, config.blocks),)
    return Launch(quantize_1x32, grid, arguments, compile_options(config.warps), rows.device)
