"""The arithmetic of every Triton kernel here, once: stored bits -> amax -> scale byte -> payload.

Integers decide every bit. The two places where floats take part are exact: a multiply by a power
of two (what underflows there rounds to zero anyway) and a cast whose hardware form was compared
with the integer form on all 2^32 inputs. Inputs arrive as integer views because the interpreter
keeps bfloat16 as raw integers and gets its subnormals wrong.

The loader imports this module twice, once for the interpreter and once for the compiler, so a
kernel module imports it relatively.
"""
# ruff: noqa: N803, RET505 - constexpr arguments are capitals; the compiler drops an untaken else.

import triton
import triton.language as tl

# Four codes leave as one word. Triton's own cast leaves pairs in 16-bit registers, and where such a
# pair goes into a word and is also used alone, ptxas 12.8 reads a register nobody wrote.
CVT_FOUR = tl.constexpr(
    "{ .reg .b16 low, high;"
    " cvt.rn.satfinite.e4m3x2.f32 low, $2, $1;"
    " cvt.rn.satfinite.e4m3x2.f32 high, $4, $3;"
    " mov.b32 $0, {low, high}; }"
)


@triton.jit
def to_float32(bits, DTYPE: tl.constexpr):
    """The fp32 value of a bf16, fp16 or fp32 pattern, exactly; int16 or int32 in."""
    if DTYPE == "bf16":
        return (bits.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    elif DTYPE == "fp16":
        return bits.to(tl.float16, bitcast=True).to(tl.float32)
    else:
        return bits.to(tl.float32, bitcast=True)


@triton.jit
def magnitude(x):
    """The fp32 bits of |x|: ordered like the values, NaN above Inf above every finite number."""
    return x.to(tl.int32, bitcast=True) & 0x7FFFFFFF


@triton.jit
def largest(sizes, AXIS: tl.constexpr, KEEP: tl.constexpr = False):
    """The maximum along an axis, as `tl.max`, which the interpreter cannot call: that function was
    decorated when Triton was imported, for the compiler."""
    return tl.reduce(sizes, AXIS, tl.standard._elementwise_max, keep_dims=KEEP)


@triton.jit
def cvt_ue8m0(x):
    """The E8M0 byte of fp32 `x`, rounded up, as int32: `cvt.rp.ue8m0x2.f32`, low operand."""
    return tl.inline_asm_elementwise(
        "{ .reg .b16 pair; cvt.rp.ue8m0x2.f32 pair, 0f00000000, $1; cvt.u32.u16 $0, pair; }",
        "=r,r",
        [x],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )


@triton.jit
def scale_byte(amax, RULE: tl.constexpr):
    """The E8M0 byte of a block from the fp32 bits of its amax; 255 if it holds a NaN or an Inf.

    `t` is amax divided by the divisor, as a pattern that may run below zero: a difference of
    patterns is exact where the divisor's mantissa bits are subtracted before the rounding.
    """
    if RULE == "rceil_ue8m0":
        # fp32(1/448), rounded once. Without .satfinite, Inf and NaN give 255 by themselves.
        return cvt_ue8m0(amax.to(tl.float32, bitcast=True) * 0.002232142956927419)
    else:
        if RULE == "rceil":
            # 0x43E00000 is 448. Only for amax 0x04600001 (t == 1) does the rounded product
            # amax * fp32(1/448) fall on a power of two that the exact quotient lies above.
            t = amax - (0x43E00000 - 0x3F800000)
            t = t - (t == 1).to(tl.int32)
            exponent = (t + 0x7FFFFF) >> 23
        else:
            # 0x43800000 is 256, the largest power of two in e4m3.
            t = amax - (0x43800000 - 0x3F800000)
            if RULE == "floor":
                exponent = t >> 23
            elif RULE == "ceil":
                exponent = (t + 0x7FFFFF) >> 23
            else:
                tl.static_assert(RULE == "even", "RULE: expected floor, rceil, ceil or even")
                exponent = (t + 0x80000) >> 23
        return tl.where(amax >= 0x7F800000, 255, tl.maximum(exponent, 0))


@triton.jit
def multiplier(byte):
    """2^(127 - byte) for a byte that `scale_byte` gives (0..247), a quiet NaN for 255."""
    bits = tl.where(byte == 255, 0x7FC00000, (254 - byte) << 23)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def round_e4m3(x):
    """The e4m3 code of fp32 `x`: nearest, ties to even, saturating; NaN is 0x7F; as int32."""
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    # From 2^-6 on: round to 3 mantissa bits and move the bias from 127 to 7. 448 is the limit.
    top = tl.minimum(size, 0x43E00000)
    normal = ((top + 0x7FFFF + ((top >> 20) & 1)) >> 20) - (120 << 3)
    # Below 2^-6 the step is 2^-9, which is one ulp of 2^14: fp32's own rounding does the work.
    tiny = (size.to(tl.float32, bitcast=True) + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    code = tl.where(size < 0x3C800000, tiny, normal) | ((bits >> 24) & 0x80)
    return tl.where(size > 0x7F800000, 0x7F, code)


@triton.jit
def cast_e4m3(x, HARDWARE: tl.constexpr):
    """The e4m3 code of fp32 `x` as uint8, by `cvt.rn.satfinite` or in integers."""
    if HARDWARE:
        return tl.inline_asm_elementwise(
            CVT_FOUR, "=r,r,r,r,r", [x], dtype=tl.uint8, is_pure=True, pack=4
        )
    else:
        return round_e4m3(x).to(tl.uint8)


@triton.jit
def cast_four(first, second, third, fourth, HARDWARE: tl.constexpr):
    """The e4m3 codes of four fp32 tensors as the bytes of int32, the first one lowest."""
    if HARDWARE:
        return tl.inline_asm_elementwise(
            CVT_FOUR,
            "=r,r,r,r,r",
            [first, second, third, fourth],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
    else:
        low = round_e4m3(first) | (round_e4m3(second) << 8)
        return low | (round_e4m3(third) << 16) | (round_e4m3(fourth) << 24)


@triton.jit
def scaled(x, factor, HARDWARE: tl.constexpr):
    """x * factor, exact but for what rounds to zero anyway; `factor` is a multiplier."""
    if HARDWARE:
        return x * factor
    else:
        # numpy warns about a signalling NaN in a product, so a poisoned block takes none.
        poisoned = factor != factor
        return tl.where(poisoned, factor, x) * factor


@triton.jit
def scaled_payload(x, factor, HARDWARE: tl.constexpr):
    """The codes of x * factor; `factor` is a multiplier, broadcast against x."""
    return cast_e4m3(scaled(x, factor, HARDWARE), HARDWARE)
