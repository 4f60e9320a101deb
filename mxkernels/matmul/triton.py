"""The Triton kernel that multiplies MX operands as they are stored, and its launch.

For few tokens a matmul is as fast as the weights can be read, and here they are read once, as one
byte an element. Codes go to fp16, which holds every e4m3 value exactly, 32 of them are multiplied
and summed in fp32, and the sum is scaled by both scales before it is added. Neither scale meets an
operand, so no operand under- or overflows; the smaller scale is applied first, so no product
overflows on the way unless it does at the end. Byte 0 is 2^-127, byte 255 NaN.
"""
# ruff: noqa: N803, N806 - constexprs are capitals.

import torch
import triton
import triton.language as tl

from mxkernels import arch
from mxkernels.matmul.backend import layout_of
from mxkernels.matmul.configs import DecodeConfig, default, interpreted

from ..dequantize.triton import e4m3_value, scale_value, value_bits  # noqa: TID252


@triton.jit
def exact_fp16(code, HARDWARE: tl.constexpr):
    """The fp16 value of an e4m3 code (uint8), exactly."""
    if HARDWARE:
        return code.to(tl.float8e4nv, bitcast=True).to(tl.float16)
    else:  # noqa: RET505 - the compiler drops an untaken else
        return e4m3_value(code, False).to(tl.float16)


@triton.jit
def scale_bits(word, STEP: tl.constexpr):
    """The fp32 pattern of the scale in byte STEP of a word."""
    return scale_value((word >> (8 * STEP)) & 0xFF).to(tl.int32, bitcast=True)


@triton.jit
def scale_words(scale_ptr, first, row, words, SWIZZLED: tl.constexpr):
    """A pointer, and where from there the first word of scales of rows `first` + `row` lies."""
    if SWIZZLED:
        row += (first % 128).to(tl.int32)
        scale_ptr += first // 128 * words * 128
        return scale_ptr, row // 128 * words * 128 + row % 32 * 4 + row % 128 // 32
    else:  # noqa: RET505 - the compiler drops an untaken else
        return scale_ptr + first * words, row * words


@triton.jit
def one_turn(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    a_offset,
    b_offset,
    lane,
    b_words,
    a_words,
    in_row,
    in_token,
    total,
    a_word,
    b_word,
    start,
    last,
    depth,
    EVEN: tl.constexpr,
    HARDWARE: tl.constexpr,
    UNROLL: tl.constexpr,
    APART: tl.constexpr,
):
    """`total` with UNROLL blocks more, and the words of scales that come next."""
    # They are on their way while these are used: Triton itself copies ahead only what a dot takes.
    ahead = tl.minimum(start + UNROLL, last - UNROLL) // UNROLL * APART
    b_next = tl.load(b_scale_ptr + b_words + ahead, mask=in_row, other=0).to(tl.int32)
    a_next = tl.load(a_scale_ptr + a_words + ahead, mask=in_token, other=0).to(tl.int32)
    for step in tl.static_range(UNROLL):
        place = (start + step) * 32
        b_mask, a_mask = in_row[:, None], in_token[None, :]
        if EVEN:
            b = tl.load(b_ptr + place + b_offset)
        else:
            inside = place + lane < depth
            b_mask, a_mask = b_mask & inside[None, :], a_mask & inside[:, None]
            b = tl.load(b_ptr + place + b_offset, mask=b_mask, other=0)
        a = tl.load(a_ptr + place + a_offset, mask=a_mask, other=0)
        dot = tl.dot(exact_fp16(b, HARDWARE), exact_fp16(a, HARDWARE), out_dtype=tl.float32)
        # Patterns of positive numbers are ordered as they are, NaN above all.
        left = scale_bits(b_word, step)[:, None]
        right = scale_bits(a_word, step)[None, :]
        small = tl.minimum(left, right).to(tl.float32, bitcast=True)
        large = tl.maximum(left, right).to(tl.float32, bitcast=True)
        total += (dot * small) * large
    return total, a_next, b_next


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
    INTERPRET: tl.constexpr,
    SWIZZLED: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """out[m, n] = sum over blocks of (codes of a . codes of b) * scale of a * scale of b.

    a: (tokens, depth), b: (columns, depth), contiguous; scales (rows, ceil(depth / 32)) in words
    of UNROLL bytes, or SWIZZLED in tiles of 128 words of 4. The grid is (column tiles, token tiles,
    parts of the depth); a part has `part_blocks` blocks, a multiple of UNROLL, as all blocks and
    their padding are. WHOLE: one part, so `out` holds bf16 patterns; else fp32 sums, one matrix for
    each part. EVEN: columns fill their tiles and the depth its words of blocks.
    """
    part = tl.program_id(2)
    blocks = (depth + 31) // 32
    first_row = tl.program_id(0).to(tl.int64) * COLUMNS
    row = tl.arange(0, COLUMNS)
    APART: tl.constexpr = 128 if SWIZZLED else 1
    if SWIZZLED:
        blocks = (blocks + 3) // 4 * 4
        if COLUMNS < 128:
            # Rows 32 apart, whose words are neighbours in a tile of scales.
            row = row % 4 * 32 + first_row.to(tl.int32) % 128 // 4 + row // 4
            first_row = first_row // 128 * 128
    words = blocks // UNROLL
    first_token = tl.program_id(1).to(tl.int64) * TOKENS
    # Offsets inside a tile fit int32, and pointers to many rows need half the registers.
    token = tl.arange(0, TOKENS)
    lane = tl.arange(0, 32)
    in_row = row < tl.minimum(columns - first_row, 1024).to(tl.int32)
    in_token = token < tl.minimum(tokens - first_token, TOKENS).to(tl.int32)
    b_ptr += first_row * depth
    a_ptr += first_token * depth
    b_scale_ptr, b_words = scale_words(b_scale_ptr, first_row, row, words, SWIZZLED)
    a_scale_ptr, a_words = scale_words(a_scale_ptr, first_token, token, words, SWIZZLED)
    b_offset = row[:, None] * depth + lane[None, :]
    a_offset = token[None, :] * depth + lane[:, None]
    first = part * part_blocks
    last = tl.minimum(first + part_blocks, blocks)
    total = tl.full([COLUMNS, TOKENS], 0.0, tl.float32)
    word = first // UNROLL * APART
    b_word = tl.load(b_scale_ptr + b_words + word, mask=in_row, other=0).to(tl.int32)
    a_word = tl.load(a_scale_ptr + a_words + word, mask=in_token, other=0).to(tl.int32)
    if INTERPRET:
        # A range needs plain integers, which the interpreter of Triton 3.6 cannot make.
        start = first
        while start < last:
            total, a_word, b_word = one_turn(
                a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, a_offset, b_offset, lane, b_words,
                a_words, in_row, in_token, total, a_word, b_word, start, last, depth,
                EVEN, HARDWARE, UNROLL, APART,
            )  # fmt: skip
            start += UNROLL
    else:
        for start in range(first, last, UNROLL):
            total, a_word, b_word = one_turn(
                a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, a_offset, b_offset, lane, b_words,
                a_words, in_row, in_token, total, a_word, b_word, start, last, depth,
                EVEN, HARDWARE, UNROLL, APART,
            )  # fmt: skip
    mask = in_row[:, None] & in_token[None, :]
    out_ptr += first_token * columns + first_row
    target = token[None, :] * columns + row[:, None]
    if WHOLE:
        tl.store(out_ptr + target, value_bits(total, "bf16", HARDWARE), mask=mask)
    else:
        size = tokens.to(tl.int64) * columns
        tl.store(out_ptr + part * size + target, total, mask=mask)


WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def aligned(scale: torch.Tensor, size: int) -> bool:
    """Whether these bytes can be viewed as words of `size` bytes."""
    return scale.data_ptr() % size == 0 and scale.storage_offset() % size == 0


def launch(
    a: torch.Tensor,
    a_scale: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    config: DecodeConfig | None = None,
) -> torch.Tensor:
    """a @ b.mT in bf16; contiguous uint8 operands (M, K), (N, K) and scales, nothing empty.

    Both scales are plain, or both swizzled.
    """
    tokens, depth = a.shape
    columns, blocks = b.shape[0], -(-depth // 32)
    swizzled = layout_of(b_scale) != "plain"
    hardware = arch.hardware_e4m3(a.device)
    if config is None:
        config = (
            default(tokens, columns, blocks, capability=arch.capability(a.device.index))
            if a.is_cuda
            else interpreted(tokens, columns, blocks)
        )
    unroll = config.unroll
    if swizzled:
        unroll, blocks = 4, -(-blocks // 4) * 4
        a_scale, b_scale = (
            scale if aligned(scale, 4) else scale.clone() for scale in (a_scale, b_scale)
        )
    while blocks % unroll or not all(aligned(scale, unroll) for scale in (a_scale, b_scale)):
        unroll //= 2
    part = -(-blocks // config.parts)
    part = -(-part // unroll) * unroll
    parts = -(-blocks // part)
    rows = min(max(16, triton.next_power_of_2(tokens)), 64)
    tile = max(config.columns, 128) if swizzled else config.columns
    even = columns % tile == 0 and depth % (32 * unroll) == 0
    if parts == 1:
        out = torch.empty(tokens, columns, dtype=torch.bfloat16, device=a.device)
        target = out.view(torch.int16)
    else:
        target = out = torch.empty(parts, tokens, columns, dtype=torch.float32, device=a.device)
    sizes = (tokens, columns, depth, part)
    constants = (even, parts == 1, hardware, not a.is_cuda, swizzled, rows, config.columns, unroll)
    grid = (-(-columns // tile) * (tile // config.columns), -(-tokens // rows), parts)
    options = {"num_warps": config.warps, "num_stages": config.stages}
    a_words, b_words = (scale.view(WORDS[unroll]) for scale in (a_scale, b_scale))
    arguments = (a, a_words, b, b_words, target, *sizes, *constants)
    if not a.is_cuda or a.device.index == torch.cuda.current_device():
        decode_matmul[grid](*arguments, **options)
    else:
        with torch.cuda.device(a.device):
            decode_matmul[grid](*arguments, **options)
    return out if parts == 1 else out.sum(0).to(torch.bfloat16)
