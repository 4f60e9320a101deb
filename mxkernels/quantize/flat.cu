// Blocks along rows that follow one another, written in the same order: no tiles.
//
// A thread takes MX_CHUNKS pieces of 16 bytes, each loaded coalesced by its warp; the lanes of a
// block exchange their amax, two blocks in a word where elements have 16 bits.
#ifndef MX_TYPE
#define MX_TYPE 0  // 0: bf16, 1: fp16, 2: fp32
#endif
#ifndef MX_CHUNKS
#define MX_CHUNKS 4
#endif
#ifndef MX_WARPS
#define MX_WARPS 8
#endif

#include "memory.cuh"

constexpr int WORD = MX_TYPE == MX_FP32 ? 1 : 2;  // elements in a word
constexpr int VECTOR = 4 * WORD;                  // elements in 16 bytes
constexpr int LANES = 32 / VECTOR;                // lanes that share a block
constexpr int BLOCKS = 32 / LANES;                // blocks in a chunk of a warp
static_assert(MX_CHUNKS % WORD == 0, "chunks of 16-bit elements go in pairs");

// What one warp does with its blocks; WHOLE: all of its chunks are inside.
template <bool WHOLE>
MX_DEVICE void quantize_chunks(const mx_u8* x, mx_u8* payload, mx_u8* scale, int inside, int rule) {
    const int lane = threadIdx.x % 32, mine = lane / LANES;
    const int addend = mx_rule_addend(rule);
    const mx_u32 exception = mx_rule_exception(rule);
    mx_u32 words[MX_CHUNKS][4];
#pragma unroll
    for (int chunk = 0; chunk < MX_CHUNKS; ++chunk) {
        if (WHOLE || mine + chunk * BLOCKS < inside) {
            mx_load_words(x + chunk * 512, words[chunk]);
        } else {
            words[chunk][0] = words[chunk][1] = words[chunk][2] = words[chunk][3] = 0;
        }
    }
    mx_u32 kept = 0;
#pragma unroll
    for (int pair = 0; pair < MX_CHUNKS; pair += WORD) {
        mx_u32 most[WORD];
#pragma unroll
        for (int at = 0; at < WORD; ++at) {
            most[at] = mx_largest_of_four<MX_TYPE>(words[pair + at]);
        }
        mx_u32 amax = mx_largest_each<MX_TYPE>(most);
#pragma unroll
        for (int step = 1; step < LANES; step *= 2) {
            amax = mx_larger<MX_TYPE>(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, step));
        }
#pragma unroll
        for (int at = 0; at < WORD; ++at) {
            const int chunk = pair + at;
            mx_u32 bits = at ? mx_element_bits<MX_TYPE, 1>(amax) : mx_element_bits<MX_TYPE, 0>(amax);
            mx_u32 byte = mx_byte<MX_TYPE>(bits, rule, addend, exception);
            mx_u32 codes[WORD];
            mx_row_codes<MX_TYPE>(words[chunk], mx_factor<MX_TYPE>(byte), codes);
            if (WHOLE || mine + chunk * BLOCKS < inside) {
                mx_store_words<WORD>(payload + chunk * BLOCKS * 32, codes);
            }
            // Lane i of a block stores the byte of chunk i, i + LANES, ...
            if (lane % LANES == chunk % LANES) kept = byte;
            if (chunk % LANES == LANES - 1 || chunk == MX_CHUNKS - 1) {
                const int own = chunk / LANES * LANES + lane % LANES;
                const int block = own * BLOCKS + mine;
                if (own <= chunk && (WHOLE || block < inside)) scale[block] = (mx_u8)kept;
            }
        }
    }
}

// `flags`: the rule. Blocks past the end are read as zeros and not stored.
extern "C" __global__ void __launch_bounds__(32 * MX_WARPS)
    quantize_flat(const mx_u8* x, mx_u8* payload, mx_u8* scale, mx_i64 blocks, mx_i64 flags) {
    constexpr int MOST = BLOCKS * MX_CHUNKS;
    const mx_i64 start = (mx_i64)blockIdx.x * (MOST * MX_WARPS);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rule = (int)(flags & 3);
    x += start * (128 / WORD) + warp * (MOST * 128 / WORD) + lane * 16;
    payload += start * 32 + warp * (MOST * 32) + lane * VECTOR;
    scale += start + warp * MOST;
    if (blocks - start >= MOST * MX_WARPS) {
        quantize_chunks<true>(x, payload, scale, MOST, rule);
    } else {
        quantize_chunks<false>(x, payload, scale, (int)(blocks - start) - warp * MOST, rule);
    }
}
