// Any block, payload order and scale layout, one direction.
#ifndef MX_BLOCK
#define MX_BLOCK 1  // 0: 1x32, 1: 32x1, 2: 32x32
#endif
#ifndef MX_TURNED
#define MX_TURNED 1  // 1: the payload is stored transposed
#endif
#ifndef MX_LAYOUT
#define MX_LAYOUT 2  // 0: plain, 1: plain_t, 2: swizzle_32_4_4
#endif

#include "scales.cuh"

static_assert(MX_BLOCK == MX_1X32 || LANES_DOWN % TALL == 0, "32 rows of a block lie in one warp");
static_assert(MX_BLOCK == MX_32X1 || LANES_ACROSS % BROAD == 0, "32 columns lie in one warp");

// Whether the stored scales, or S of the swizzle, are the transpose of the logical ones.
constexpr bool SCALES_TURNED = MX_LAYOUT == MX_SWIZZLE
                                   ? MX_BLOCK == MX_32X1 || (MX_BLOCK == MX_32X32 && MX_TURNED)
                                   : MX_LAYOUT == MX_PLAIN_T;
typedef MxScales<MX_BLOCK, SCALES_TURNED> Scales;

template <bool WHOLE>
MX_DEVICE void quantize(const MxTile& t, const mx_u8* x, mx_i64 row_stride, mx_i64 matrix_stride,
                        mx_u8* payload, mx_u8* kept) {
    mx_u32 words[ROWS][4];
    mx_load_tile<WHOLE>(t, x, row_stride, matrix_stride, words);
    mx_u32 factor[MX_BLOCK == MX_1X32 ? ROWS : 4];
    if (MX_BLOCK == MX_1X32) {
#pragma unroll
        for (int row = 0; row < ROWS; row += WORD) {
            mx_u8 bytes[WORD];
            mx_row_factors(t, words, row, factor + (MX_BLOCK == MX_1X32 ? row : 0), bytes);
            mx_keep_rows<SCALES_TURNED>(t, row, bytes, kept);
        }
    } else if (MX_BLOCK == MX_32X1) {
        mx_u8 bytes[VECTOR];
        mx_column_factors(t, words, *(mx_u32(*)[4])factor, bytes);
        mx_keep_columns<SCALES_TURNED>(t, bytes, kept);
    } else {
        mx_u8 byte;
        factor[0] = mx_block_factor(t, words, &byte);
        mx_keep_block<SCALES_TURNED>(t, byte, kept);
    }
    constexpr int BY_ROW = MX_BLOCK == MX_1X32, BY_WORD = MX_BLOCK == MX_32X1;
    if (MX_TURNED) {
        mx_store_columns<WHOLE, BY_ROW, BY_WORD>(t, words, factor, payload);
        return;
    }
    mx_u8* to = mx_row_place(t, payload);
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        mx_store_row<WHOLE>(t, words[row], row, factor + row * BY_ROW, BY_WORD, to);
        to += t.columns;
    }
}

// Strides count elements, `scale_stride` bytes; `flags`: the rule, and MxFlag.
extern "C" __global__ void __launch_bounds__(THREADS, MX_RESIDENT)
    quantize_tile(const mx_u8* x, mx_u8* payload, mx_u8* scale, mx_i64 rows, mx_i64 columns,
                  mx_i64 row_stride, mx_i64 matrix_stride, mx_i64 scale_stride, mx_i64 down,
                  mx_i64 across, mx_i64 flags) {
    __shared__ __align__(16) mx_u8 kept[Scales::P * Scales::Q];
    const MxTile t = mx_tile(rows, columns, down, across, flags);
    if (MX_FULL || mx_whole(t)) {
        quantize<true>(t, x, row_stride, matrix_stride, payload, kept);
    } else {
        quantize<false>(t, x, row_stride, matrix_stride, payload, kept);
    }
    __syncthreads();
    mx_store_scales<MX_BLOCK, MX_LAYOUT, SCALES_TURNED>(t, kept, scale + t.matrix * scale_stride);
}
