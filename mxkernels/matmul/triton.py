"""The Triton kernel that multiplies MX operands as they are stored, and its launch.

For few tokens a matmul is as fast as the weights can be read, and here they are read once, as one
byte an element. Codes go to fp16, which holds every e4m3 value exactly, 32 of them are multiplied
and summed in fp32, and the sum is scaled by both scales before it is added. Neither scale meets an
operand, so no operand under- or overflows; the smaller scale is applied first, so no product
overflows on the way unless it does at the end. Byte 0 is 2^-127, byte 255 NaN.
"""
# ruff: noqa: N803 - constexpr arguments are capitals.

import torch
import triton
import triton.language as tl

from mxkernels import arch
from mxkernels.matmul.configs import DecodeConfig, default, interpreted

from ..dequantize.triton import e4m3_value, scale_value, value_bits  # noqa: TID252


@triton.jit
def exact_fp16(code, HARDWARE: tl.constexpr):
    """The fp16 value of an e4m3 code (uint8), exactly."""
    if HARDWARE:
        return code.to(tl.float8e4nv, bitcast=True).to(tl.float16)
    else:  # noqa: RET505 - the compiler drops an untaken else
        return e4m3_value(code, False).to(tl.float16)


@triton.jit(do_not_specialize=["tokens"])
def decode_matmul(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    out_ptr,
    tokens,
    columns,
    depth,
    part_blocks,
    EVEN: tl.constexpr,
    WHOLE: tl.constexpr,
    HARDWARE: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """out[m, n] = sum over blocks of (codes of a . codes of b) * scale of a * scale of b.

    a: (tokens, depth), b: (columns, depth), contiguous; scales (rows, ceil(depth / 32)). The grid
    is (column tiles, token tiles, parts of the depth); a part has `part_blocks` blocks. WHOLE: one
    part, so `out` holds bf16 patterns; else fp32 sums, one matrix for each part. EVEN: columns and
    blocks fill their tiles.
    """
    part = tl.program_id(2)
    blocks = (depth + 31) // 32
    row = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    token = tl.program_id(1).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    lane = tl.arange(0, 32)
    in_token = token < tokens
    in_row = row < columns
    b_rows = b_ptr + row[:, None] * depth + lane[None, :]
    a_rows = a_ptr + token[None, :] * depth + lane[:, None]
    first = part * part_blocks
    last = tl.minimum(first + part_blocks, blocks)
    total = tl.full([COLUMNS, TOKENS], 0.0, tl.float32)
    for start in range(first, last, UNROLL):
        for step in tl.static_range(UNROLL):
            block = start + step
            if EVEN:
                b = tl.load(b_rows + block * 32)
                b_scale = tl.load(b_scale_ptr + row * blocks + block)
                a_mask = in_token[None, :]
                a_scale_mask = in_token
            else:
                inside = block * 32 + lane < tl.minimum(depth, last * 32)
                b = tl.load(b_rows + block * 32, mask=in_row[:, None] & inside[None, :], other=0)
                b_mask = in_row & (row * 0 + block < last)
                b_scale = tl.load(b_scale_ptr + row * blocks + block, mask=b_mask, other=0)
                a_mask = in_token[None, :] & inside[:, None]
                a_scale_mask = in_token & (token * 0 + block < last)
            a = tl.load(a_rows + block * 32, mask=a_mask, other=0)
            a_scale = tl.load(a_scale_ptr + token * blocks + block, mask=a_scale_mask, other=0)
            dot = tl.dot(exact_fp16(b, HARDWARE), exact_fp16(a, HARDWARE), out_dtype=tl.float32)
            # Patterns of positive numbers are ordered as they are, NaN above all.
            left = scale_value(b_scale).to(tl.int32, bitcast=True)[:, None]
            right = scale_value(a_scale).to(tl.int32, bitcast=True)[None, :]
            small = tl.minimum(left, right).to(tl.float32, bitcast=True)
            large = tl.maximum(left, right).to(tl.float32, bitcast=True)
            total += (dot * small) * large
    mask = in_row[:, None] & in_token[None, :]
    target = token[None, :] * columns + row[:, None]
    if WHOLE:
        tl.store(out_ptr + target, value_bits(total, "bf16", HARDWARE), mask=mask)
    else:
        size = tokens.to(tl.int64) * columns
        tl.store(out_ptr + part * size + target, total, mask=mask)


def launch(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    config: DecodeConfig | None = None,
) -> torch.Tensor:
    """a @ b.mT in bf16; contiguous uint8 operands (M, K), (N, K) and scales, nothing empty."""
    tokens, depth = a.shape
    columns, blocks = b.shape[0], b_scale.shape[1]
    if config is None:
        pick = default if a.is_cuda else interpreted
        config = pick(tokens, columns, blocks)
    part = -(-blocks // config.parts)
    part = -(-part // config.unroll) * config.unroll
    parts = -(-blocks // part)
    rows = min(max(16, triton.next_power_of_2(tokens)), 64)
    even = columns % config.columns == 0 and depth == part * parts * 32
    if parts == 1:
        out = torch.empty(tokens, columns, dtype=torch.bfloat16, device=a.device)
        target = out.view(torch.int16)
    else:
        target = out = torch.empty(parts, tokens, columns, dtype=torch.float32, device=a.device)
    hardware = arch.hardware_e4m3(a.device)
    sizes = (tokens, columns, depth, part)
    constants = (even, parts == 1, hardware, rows, config.columns, config.unroll)
    grid = (-(-columns // config.columns), -(-tokens // rows), parts)
    options = {"num_warps": config.warps, "num_stages": config.stages}
    arguments = (a, a_scale, b, b_scale, target, *sizes, *constants)
    if not a.is_cuda or a.device.index == torch.cuda.current_device():
        decode_matmul[grid](*arguments, **options)
    else:
        with torch.cuda.device(a.device):
            decode_matmul[grid](*arguments, **options)
    return out if parts == 1 else out.sum(0).to(torch.bfloat16)
