// Loads and stores of the quantizers: wide where memory allows, element by element where not.
#pragma once

#include "mx_arithmetic.cuh"

#define MX_DEVICE static __device__ __forceinline__

typedef unsigned char mx_u8;
typedef unsigned short mx_u16;
typedef long long mx_i64;

// Sixteen aligned bytes as four words. Measured on an H200: with L1::no_allocate, with or without a
// prefetch of 256 bytes into the L2, the same kernels take 5 to 10 % longer.
MX_DEVICE void mx_load_words(const void* from, mx_u32* out) {
#if defined(__CUDA_ARCH__)
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
        : "l"(from));
#else
    __builtin_memcpy(out, from, 16);
#endif
}

// One to four aligned words. Streaming stores (st.global.cs) gained nothing on an H200.
template <int WORDS>
MX_DEVICE void mx_store_words(void* to, const mx_u32* words) {
#if defined(__CUDA_ARCH__)
    if (WORDS == 4) {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]),
                     "r"(words[1 % WORDS]), "r"(words[2 % WORDS]), "r"(words[3 % WORDS])
                     : "memory");
    } else if (WORDS == 2) {
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(words[0]),
                     "r"(words[1 % WORDS])
                     : "memory");
    } else {
        asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(words[0]) : "memory");
    }
#else
    __builtin_memcpy(to, words, 4 * WORDS);
#endif
}

// The first `count` of VECTOR elements, zeros after them; four words.
template <int TYPE>
MX_DEVICE void mx_load_some(const mx_u8* from, int count, mx_u32* out) {
    constexpr int PER_WORD = TYPE == MX_FP32 ? 1 : 2;
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        out[word] = 0;
#pragma unroll
        for (int half = 0; half < PER_WORD; ++half) {
            int at = word * PER_WORD + half;
            if (at >= count) continue;
            if (TYPE == MX_FP32) {
                out[word] = ((const mx_u32*)from)[at];
            } else {
                out[word] |= (mx_u32)((const mx_u16*)from)[at] << (16 * half);
            }
        }
    }
}

// The first `count` bytes of `bytes` bytes in words.
template <int BYTES>
MX_DEVICE void mx_store_some(mx_u8* to, int count, const mx_u32* words) {
#pragma unroll
    for (int at = 0; at < BYTES; ++at) {
        if (at < count) to[at] = (mx_u8)(words[at / 4] >> (8 * (at % 4)));
    }
}

// BYTES aligned bytes of shared memory to global memory.
template <int BYTES>
MX_DEVICE void mx_copy(mx_u8* to, const mx_u8* from) {
    if (BYTES == 4) {
        *(mx_u32*)to = *(const mx_u32*)from;
    } else if (BYTES == 2) {
        *(mx_u16*)to = *(const mx_u16*)from;
    } else {
        *to = *from;
    }
}
