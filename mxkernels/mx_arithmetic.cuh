// The arithmetic of every CUDA kernel here, once: stored bits -> amax -> scale byte -> payload.
//
// Integers decide every bit. Floats take part in exact steps only: a multiply by a power of two
// (what underflows there rounds to zero anyway), an addition whose rounding is the one wanted, and
// a cast whose hardware form equals the integer form on all 2^32 inputs. The host forms are what
// the tests check on every fp32 input; the device forms differ from them where `asm` stands.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define MX_FUNCTION static __host__ __device__ __forceinline__
#else
#define MX_FUNCTION static inline
#endif

#ifndef MX_UE8M0_CVT
#define MX_UE8M0_CVT 0  // 1: rceil by cvt.rp.ue8m0x2.f32, which sm_100a and sm_120a have
#endif
#if MX_UE8M0_CVT && defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM100_ALL) && \
    !defined(__CUDA_ARCH_FEAT_SM103_ALL) && !defined(__CUDA_ARCH_FEAT_SM120_ALL)
#error "MX_UE8M0_CVT=1 needs sm_100a, sm_103a or sm_120a: no other target has cvt.rp.ue8m0x2.f32"
#endif

typedef unsigned int mx_u32;  // <stdint.h> is not there under NVRTC

enum MxRule { MX_FLOOR = 0, MX_RCEIL = 1, MX_CEIL = 2, MX_EVEN = 3 };
enum MxType { MX_BF16 = 0, MX_FP16 = 1, MX_FP32 = 2 };

MX_FUNCTION float mx_float(mx_u32 bits) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(bits);
#else
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
#endif
}

MX_FUNCTION mx_u32 mx_bits(float value) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(value);
#else
    mx_u32 bits;
    __builtin_memcpy(&bits, &value, 4);
    return bits;
#endif
}

// The fp32 bits of a bf16 pattern, exactly.
MX_FUNCTION mx_u32 mx_bf16_bits(mx_u32 half) { return half << 16; }

// The fp32 bits of an fp16 pattern, exactly; a NaN stays one.
MX_FUNCTION mx_u32 mx_fp16_bits(mx_u32 half) {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)half));
    return mx_bits(value);
#else
    mx_u32 size = half & 0x7FFF;
    // Fields moved to their places read as the value times 2^-112, subnormals as well.
    mx_u32 bits = mx_bits(mx_float(size << 13) * 0x1p112f);
    if (size >= 0x7C00) bits = 0x7F800000u | (size << 13);
    return bits | ((half & 0x8000) << 16);
#endif
}

// What is added to the fp32 bits of amax so that the exponent field is the scale byte: minus the
// divisor as a pattern (256 is 0x43800000, 448 is 0x43E00000), plus 2^0, plus the rounding.
MX_FUNCTION int mx_rule_addend(int rule) {
    const int base = 0x3F800000 - 0x43800000;
    if (rule == MX_FLOOR) return base;
    if (rule == MX_RCEIL) return 0x3F800000 - 0x43E00000 + 0x7FFFFF;
    return base + (rule == MX_CEIL ? 0x7FFFFF : 0x80000);
}

// The one amax whose byte the addend gets wrong, fp32 only: the rounded product
// amax * fp32(1/448) falls on a power of two that the exact quotient lies above. 0: none.
MX_FUNCTION mx_u32 mx_rule_exception(int rule) { return rule == MX_RCEIL ? 0x04600001u : 0u; }

// The E8M0 byte of a block from the fp32 bits of its amax; 255 if it holds a NaN or an Inf.
MX_FUNCTION mx_u32 mx_scale_byte(mx_u32 amax, int addend, mx_u32 exception) {
    int moved = (int)(amax - (exception && amax == exception ? 1u : 0u)) + addend;
    int byte = moved >> 23;
    byte = byte > 0 ? byte : 0;
    return amax >= 0x7F800000u ? 255u : (mx_u32)byte;
}

#if MX_UE8M0_CVT && defined(__CUDA_ARCH__)
// rceil in hardware. Without .satfinite, so that an Inf gives 255 and poisons its block.
MX_FUNCTION mx_u32 mx_scale_byte_cvt(mx_u32 amax) {
    unsigned short pair;
    float ratio = __fmul_rn(mx_float(amax), mx_float(0x3B124925u));
    asm("cvt.rp.ue8m0x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(ratio));
    return pair & 0xFFu;
}
#endif

// The upper half of the fp32 bits of 2^(127 - byte), byte up to 253; a quiet NaN for 255.
MX_FUNCTION mx_u32 mx_multiplier_half(mx_u32 byte) {
    return byte == 255 ? 0x7FC0u : (254u - byte) << 7;
}

// The e4m3 code of the fp32 pattern `bits`: nearest, ties to even, saturating; NaN is 0x7F.
MX_FUNCTION mx_u32 mx_round_e4m3(mx_u32 bits) {
    mx_u32 size = bits & 0x7FFFFFFFu;
    // From 2^-6 on: round to 3 mantissa bits and move the bias from 127 to 7. 448 is the limit.
    mx_u32 top = size < 0x43E00000u ? size : 0x43E00000u;
    mx_u32 normal = ((top + 0x7FFFFu + ((top >> 20) & 1)) >> 20) - (120u << 3);
    // Below 2^-6 the step is 2^-9, one ulp of 2^14: fp32's own rounding does the work.
    mx_u32 tiny = mx_bits(mx_float(size) + 16384.0f) - 0x46800000u;
    mx_u32 code = (size < 0x3C800000u ? tiny : normal) | ((bits >> 24) & 0x80u);
    return size > 0x7F800000u ? 0x7Fu : code;
}

// The codes of four floats as the bytes of a word, the first one lowest.
MX_FUNCTION mx_u32 mx_cast_four(float a, float b, float c, float d) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    mx_u32 word;
    asm("{ .reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high}; }"
        : "=r"(word) : "f"(a), "f"(b), "f"(c), "f"(d));
    return word;
#else
    mx_u32 low = mx_round_e4m3(mx_bits(a)) | (mx_round_e4m3(mx_bits(b)) << 8);
    return low | (mx_round_e4m3(mx_bits(c)) << 16) | (mx_round_e4m3(mx_bits(d)) << 24);
#endif
}

// A word holds two 16-bit elements, the first one low, or one fp32 element.

MX_FUNCTION mx_u32 mx_larger_u32(mx_u32 a, mx_u32 b) { return a > b ? a : b; }

// The signs off: integers in the order of the magnitudes, NaN above Inf above every finite one.
template <int TYPE>
MX_FUNCTION mx_u32 mx_sizes(mx_u32 word) {
    return word & (TYPE == MX_FP32 ? 0x7FFFFFFFu : 0x7FFF7FFFu);
}

// The larger sizes, each half by itself for 16-bit elements.
template <int TYPE>
MX_FUNCTION mx_u32 mx_larger(mx_u32 a, mx_u32 b) {
    if (TYPE == MX_FP32) return mx_larger_u32(a, b);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    mx_u32 most;
    asm("max.u16x2 %0, %1, %2;" : "=r"(most) : "r"(a), "r"(b));
    return most;
#elif defined(__CUDA_ARCH__)
    // No packed integer maximum: a float one that keeps NaN (as 0x7FFF, above Inf as well).
    mx_u32 most;
    if (TYPE == MX_BF16) {
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(most) : "r"(a), "r"(b));
    } else {
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(most) : "r"(a), "r"(b));
    }
    return most;
#else
    return mx_larger_u32(a & 0xFFFF, b & 0xFFFF) | mx_larger_u32(a & 0xFFFF0000u, b & 0xFFFF0000u);
#endif
}

// The fp32 bits of the lower (HALF 0) or upper (1) element of a word; of a word of fp32, itself.
template <int TYPE, int HALF>
MX_FUNCTION mx_u32 mx_element_bits(mx_u32 word) {
    if (TYPE == MX_FP32) return word;
    if (TYPE == MX_FP16) return mx_fp16_bits(HALF ? word >> 16 : word & 0xFFFF);
    return HALF ? word & 0xFFFF0000u : mx_bf16_bits(word);
}

// The elements of a word times their multipliers, as floats. `factor` holds mx_multiplier_half of
// each element, in the word's own halves; for fp32 it is the multiplier's 32 bits. The product is
// exact but for what underflows, and that rounds to zero in e4m3 anyway.
template <int TYPE>
MX_FUNCTION void mx_scaled(mx_u32 word, mx_u32 factor, float* out) {
    if (TYPE == MX_FP32) {
        out[0] = mx_float(word) * mx_float(factor);
        return;
    }
    float low = mx_float(factor << 16), high = mx_float(factor & 0xFFFF0000u);
#if defined(__CUDA_ARCH__)
    if (TYPE == MX_BF16) {
        // Both at once; -0 added to keep the sign of a zero.
        mx_u32 both;
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(both) : "r"(word), "r"(factor), "r"(0x80008000u));
        out[0] = mx_float(both << 16);
        out[1] = mx_float(both & 0xFFFF0000u);
        return;
    }
#endif
    out[0] = mx_float(mx_element_bits<TYPE, 0>(word)) * low;
    out[1] = mx_float(mx_element_bits<TYPE, 1>(word)) * high;
}

// The largest sizes of four words.
template <int TYPE>
MX_FUNCTION mx_u32 mx_largest_of_four(const mx_u32* words) {
    mx_u32 low = mx_larger<TYPE>(mx_sizes<TYPE>(words[0]), mx_sizes<TYPE>(words[1]));
    mx_u32 high = mx_larger<TYPE>(mx_sizes<TYPE>(words[2]), mx_sizes<TYPE>(words[3]));
    return mx_larger<TYPE>(low, high);
}

// One size for each word of `most`: two words of 16-bit sizes become one, the first one low.
template <int TYPE>
MX_FUNCTION mx_u32 mx_largest_each(const mx_u32* most) {
    if (TYPE == MX_FP32) return most[0];
    mx_u32 low = (most[0] & 0xFFFFu) | (most[1] << 16);
    mx_u32 high = (most[0] >> 16) | (most[1] & 0xFFFF0000u);
    return mx_larger<TYPE>(low, high);
}

// The scale byte by the rule, in integers, or by the instruction where that was asked for.
template <int TYPE>
MX_FUNCTION mx_u32 mx_byte(mx_u32 amax, int rule, int addend, mx_u32 exception) {
#if MX_UE8M0_CVT && defined(__CUDA_ARCH__)
    if (rule == MX_RCEIL) return mx_scale_byte_cvt(amax);
#endif
    (void)rule;
    // No amax of a 16-bit element is the exception.
    return mx_scale_byte(amax, addend, TYPE == MX_FP32 ? exception : 0u);
}

// The multiplier of a byte as `mx_scaled` takes it, for every element of a word.
template <int TYPE>
MX_FUNCTION mx_u32 mx_factor(mx_u32 byte) {
    mx_u32 half = mx_multiplier_half(byte);
    return TYPE == MX_FP32 ? half << 16 : half * 0x10001u;
}

// The codes of four words with one multiplier: two words of codes, or one for fp32.
template <int TYPE>
MX_FUNCTION void mx_row_codes(const mx_u32* words, mx_u32 factor, mx_u32* codes) {
    constexpr int WORD = TYPE == MX_FP32 ? 1 : 2;
    float values[4 * WORD];
    for (int word = 0; word < 4; ++word) mx_scaled<TYPE>(words[word], factor, values + word * WORD);
    for (int at = 0; at < WORD; ++at) {
        const float* four = values + 4 * at;
        codes[at] = mx_cast_four(four[0], four[1], four[2], four[3]);
    }
}
