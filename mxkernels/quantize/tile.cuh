// A tile of a matrix in the registers of one thread block, its blocks' scales, and its payload in
// either order.
//
// A thread holds MX_ROWS rows x 16 bytes, loaded 16 bytes at a time. A warp is MX_LANES_DOWN lanes
// high, so both the row-order and the transposed payload leave it in pieces of whole sectors
// straight from registers: a column's MX_ROWS codes are neighbours in the transposed payload.
#pragma once

#include "memory.cuh"

#ifndef MX_TYPE
#define MX_TYPE 0  // 0: bf16, 1: fp16, 2: fp32
#endif
#ifndef MX_ROWS
#define MX_ROWS 16  // rows of a thread: 8, 16 or 32
#endif
#ifndef MX_LANES_DOWN
#define MX_LANES_DOWN 8
#endif
#ifndef MX_WARPS_DOWN
#define MX_WARPS_DOWN 1
#endif
#ifndef MX_WARPS_ACROSS
#define MX_WARPS_ACROSS 4
#endif
#ifndef MX_FULL
#define MX_FULL 1  // 1: the matrix is whole tiles, and its memory is aligned
#endif
#ifndef MX_RESIDENT
#define MX_RESIDENT 1  // thread blocks that shall fit a multiprocessor
#endif

constexpr int WORD = MX_TYPE == MX_FP32 ? 1 : 2;  // elements in a word
constexpr int VECTOR = 4 * WORD;                  // elements in 16 bytes
constexpr int SIZE = 4 / WORD;                    // bytes of an element
constexpr int ROWS = MX_ROWS;
constexpr int LANES_DOWN = MX_LANES_DOWN, LANES_ACROSS = 32 / LANES_DOWN;
constexpr int TALL = 32 / ROWS;     // lanes that share 32 rows
constexpr int BROAD = 32 / VECTOR;  // lanes that share 32 columns
constexpr int TILE_ROWS = MX_WARPS_DOWN * LANES_DOWN * ROWS;
constexpr int TILE_COLUMNS = MX_WARPS_ACROSS * LANES_ACROSS * VECTOR;
constexpr int THREADS = 32 * MX_WARPS_DOWN * MX_WARPS_ACROSS;
static_assert(TILE_ROWS % 32 == 0 && TILE_COLUMNS % 32 == 0, "a tile is whole blocks");

enum MxBlock { MX_1X32 = 0, MX_32X1 = 1, MX_32X32 = 2 };
enum MxFlag { MX_ROWS_FIRST = 4, MX_ALIGNED = 8, MX_ALIGNED_ROW = 16, MX_ALIGNED_COLUMN = 32, MX_FOLDED = 64 };

// The matrix this thread block works on, where its tile begins, and what of it is inside.
struct MxTile {
    mx_i64 matrix, rows, columns, first_row, first_column;
    int rows_left, columns_left;  // at most those of a tile
    int row, column;              // of this thread, in the tile
    int flags, rule, addend;
    mx_u32 exception;
};

MX_DEVICE MxTile mx_tile(mx_i64 rows, mx_i64 columns, mx_i64 down, mx_i64 across, mx_i64 flags) {
    MxTile t;
    const bool rows_first = (flags & MX_ROWS_FIRST) != 0;
    unsigned fast = blockIdx.x, slow = blockIdx.y;
    t.matrix = blockIdx.z;
    if (flags & MX_FOLDED) {  // more tiles than a grid's second or third dimension takes
        const unsigned length = (unsigned)(rows_first ? down : across);
        const unsigned each = (unsigned)(down * across);
        t.matrix = blockIdx.x / each;
        slow = (blockIdx.x - (unsigned)t.matrix * each) / length;
        fast = blockIdx.x - (unsigned)t.matrix * each - slow * length;
    }
    t.rows = rows;
    t.columns = columns;
    t.first_row = (mx_i64)(rows_first ? fast : slow) * TILE_ROWS;
    t.first_column = (mx_i64)(rows_first ? slow : fast) * TILE_COLUMNS;
    const mx_i64 below = rows - t.first_row, right = columns - t.first_column;
    t.rows_left = below < TILE_ROWS ? (int)below : TILE_ROWS;
    t.columns_left = right < TILE_COLUMNS ? (int)right : TILE_COLUMNS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    t.row = (warp % MX_WARPS_DOWN * LANES_DOWN + lane % LANES_DOWN) * ROWS;
    t.column = (warp / MX_WARPS_DOWN * LANES_ACROSS + lane / LANES_DOWN) * VECTOR;
    t.flags = (int)flags;
    t.rule = t.flags & 3;
    t.addend = mx_rule_addend(t.rule);
    t.exception = mx_rule_exception(t.rule);
    return t;
}

// Whether all of the tile is inside and can be loaded and stored in wide pieces.
MX_DEVICE bool mx_whole(const MxTile& t) {
    const int wide = MX_ALIGNED | MX_ALIGNED_ROW | MX_ALIGNED_COLUMN;
    return t.rows_left == TILE_ROWS && t.columns_left == TILE_COLUMNS && (t.flags & wide) == wide;
}

// The rows of this thread; zeros where they are outside.
template <bool WHOLE>
MX_DEVICE void mx_load_tile(const MxTile& t, const mx_u8* x, mx_i64 row_stride,
                            mx_i64 matrix_stride, mx_u32 (&out)[ROWS][4]) {
    const mx_u8* from = x + (t.matrix * matrix_stride + (t.first_row + t.row) * row_stride +
                             t.first_column + t.column) * SIZE;
    const int count = WHOLE ? VECTOR : t.columns_left - t.column;
    const bool wide = WHOLE || ((t.flags & MX_ALIGNED) && count >= VECTOR);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        if (WHOLE || (wide && t.row + i < t.rows_left)) {
            mx_load_words(from, out[i]);
        } else {
            mx_load_some<MX_TYPE>(from, t.row + i < t.rows_left ? count : 0, out[i]);
        }
        from += row_stride * SIZE;
    }
}

MX_DEVICE mx_u32 mx_exchange(mx_u32 amax, int first, int end) {
#pragma unroll
    for (int step = first; step < end; step *= 2) {
        amax = mx_larger<MX_TYPE>(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, step));
    }
    return amax;
}

template <int HALF>
MX_DEVICE mx_u32 mx_byte_of(const MxTile& t, mx_u32 amax) {
    return mx_byte<MX_TYPE>(mx_element_bits<MX_TYPE, HALF>(amax), t.rule, t.addend, t.exception);
}

// Multipliers of WORD neighbouring rows from `row` on, in blocks of (1, 32), and their bytes.
MX_DEVICE void mx_row_factors(const MxTile& t, const mx_u32 (&x)[ROWS][4], int row,
                              mx_u32* factor, mx_u8* bytes) {
    mx_u32 most[WORD];
#pragma unroll
    for (int at = 0; at < WORD; ++at) most[at] = mx_largest_of_four<MX_TYPE>(x[row + at]);
    mx_u32 amax = mx_exchange(mx_largest_each<MX_TYPE>(most), LANES_DOWN, LANES_DOWN * BROAD);
    mx_u32 byte = mx_byte_of<0>(t, amax);
    factor[0] = mx_factor<MX_TYPE>(byte);
    bytes[0] = (mx_u8)byte;
    if (WORD == 2) {
        byte = mx_byte_of<WORD - 1>(t, amax);
        factor[WORD - 1] = mx_factor<MX_TYPE>(byte);
        bytes[WORD - 1] = (mx_u8)byte;
    }
}

// Multipliers of this thread's columns, in blocks of (32, 1), as the halves of words; their bytes.
MX_DEVICE void mx_column_factors(const MxTile& t, const mx_u32 (&x)[ROWS][4],
                                 mx_u32 (&factor)[4], mx_u8 (&bytes)[VECTOR]) {
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        mx_u32 amax = 0;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            amax = mx_larger<MX_TYPE>(amax, mx_sizes<MX_TYPE>(x[i][word]));
        }
        amax = mx_exchange(amax, 1, TALL);
        mx_u32 low = mx_byte_of<0>(t, amax);
        factor[word] = mx_factor<MX_TYPE>(low);
        bytes[word * WORD] = (mx_u8)low;
        if (WORD == 2) {
            mx_u32 high = mx_byte_of<WORD - 1>(t, amax);
            factor[word] = (factor[word] & 0xFFFFu) | (mx_factor<MX_TYPE>(high) & 0xFFFF0000u);
            bytes[word * WORD + WORD - 1] = (mx_u8)high;
        }
    }
}

// The multiplier of the (32, 32) block this thread is in, and its byte.
MX_DEVICE mx_u32 mx_block_factor(const MxTile& t, const mx_u32 (&x)[ROWS][4], mx_u8* byte) {
    mx_u32 amax = 0;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            amax = mx_larger<MX_TYPE>(amax, mx_sizes<MX_TYPE>(x[i][word]));
        }
    }
    if (WORD == 2) amax = mx_larger_u32(amax & 0xFFFFu, amax >> 16);
    amax = mx_exchange(mx_exchange(amax, 1, TALL), LANES_DOWN, LANES_DOWN * BROAD);
    mx_u32 found = mx_byte_of<0>(t, amax);
    *byte = (mx_u8)found;
    return mx_factor<MX_TYPE>(found);
}

// Store the codes of one row of this thread in the order of the input.
template <bool WHOLE>
MX_DEVICE void mx_store_row(const MxTile& t, const mx_u32 (&x)[4], int row, const mx_u32* factor,
                            int step, mx_u8* to) {
    float values[VECTOR];
    mx_u32 codes[WORD];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        mx_scaled<MX_TYPE>(x[word], factor[word * step], values + word * WORD);
    }
#pragma unroll
    for (int at = 0; at < WORD; ++at) {
        codes[at] = mx_cast_four(values[4 * at], values[4 * at + 1], values[4 * at + 2],
                                 values[4 * at + 3]);
    }
    const int count = t.columns_left - t.column;
    if (WHOLE) {
        mx_store_words<WORD>(to, codes);
    } else if (t.row + row < t.rows_left) {
        if ((t.flags & MX_ALIGNED_ROW) && count >= VECTOR) {
            mx_store_words<WORD>(to, codes);
        } else {
            mx_store_some<VECTOR>(to, count, codes);
        }
    }
}

// Where the codes of this thread's first row begin in a payload in the order of the input.
MX_DEVICE mx_u8* mx_row_place(const MxTile& t, mx_u8* payload) {
    return payload + (t.matrix * t.rows + t.first_row + t.row) * t.columns + t.first_column + t.column;
}

// Store all codes transposed: neighbours are rows. `factor` has `by_row` or `by_word` as step.
template <bool WHOLE, int BY_ROW, int BY_WORD>
MX_DEVICE void mx_store_columns(const MxTile& t, const mx_u32 (&x)[ROWS][4], const mx_u32* factor,
                                mx_u8* payload) {
    constexpr int PIECE = ROWS < 16 ? ROWS / 4 : 4;  // words of a store
    mx_u8* to = payload + (t.matrix * t.columns + t.first_column + t.column) * t.rows +
                t.first_row + t.row;
#pragma unroll
    for (int word = 0; word < 4; ++word) {
        mx_u32 codes[WORD][ROWS / 4];
#pragma unroll
        for (int four = 0; four < ROWS / 4; ++four) {
            float values[4][WORD];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = four * 4 + i;
                mx_scaled<MX_TYPE>(x[row][word], factor[row * BY_ROW + word * BY_WORD], values[i]);
            }
#pragma unroll
            for (int half = 0; half < WORD; ++half) {
                codes[half][four] = mx_cast_four(values[0][half], values[1][half], values[2][half],
                                                 values[3][half]);
            }
        }
#pragma unroll
        for (int half = 0; half < WORD; ++half) {
            const bool wide = (t.flags & MX_ALIGNED_COLUMN) && t.row + ROWS <= t.rows_left;
            if (WHOLE || (wide && t.column + word * WORD + half < t.columns_left)) {
#pragma unroll
                for (int at = 0; at < ROWS / 4; at += PIECE) {
                    mx_store_words<PIECE>(to + 4 * at, codes[half] + at);
                }
            } else if (t.column + word * WORD + half < t.columns_left) {
                mx_store_some<ROWS>(to, t.rows_left - t.row, codes[half]);
            }
            to += t.rows;
        }
    }
}
