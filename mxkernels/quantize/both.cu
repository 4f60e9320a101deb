// Both directions from one read: blocks (1, 32) in the order of the input, (32, 1) transposed.
#ifndef MX_LAYOUT
#define MX_LAYOUT 2  // of the scales along rows; 0: plain, 1: plain_t, 2: swizzle_32_4_4
#endif
#ifndef MX_COLUMN_LAYOUT
#define MX_COLUMN_LAYOUT 2  // of the scales along columns
#endif
#ifndef MX_ROWS
#define MX_ROWS 8  // rounding in integers, below sm_89, leaves no registers for more
#endif
#ifndef MX_LANES_DOWN
#define MX_LANES_DOWN 4
#endif
#ifndef MX_WARPS_DOWN
#define MX_WARPS_DOWN 4
#endif
#ifndef MX_WARPS_ACROSS
#define MX_WARPS_ACROSS 2
#endif

#ifndef MX_COLUMNS_FIRST
#define MX_COLUMNS_FIRST 0  // 1: (32, 1) before (1, 32)
#endif

#include "scales.cuh"

static_assert(LANES_DOWN % TALL == 0 && LANES_ACROSS % BROAD == 0, "a block lies in one warp");
constexpr bool ROWS_TURNED = MX_LAYOUT == MX_PLAIN_T;
constexpr bool COLUMNS_TURNED = MX_COLUMN_LAYOUT != MX_PLAIN;
typedef MxScales<MX_1X32, ROWS_TURNED> RowScales;
typedef MxScales<MX_32X1, COLUMNS_TURNED> ColumnScales;

template <bool WHOLE>
MX_DEVICE void quantize_columns(const MxTile& t, const mx_u32 (&words)[ROWS][4], mx_u8* payload,
                                mx_u8* kept) {
    mx_u8 bytes[VECTOR];
    mx_u32 factor[4];
    mx_column_factors(t, words, factor, bytes);
    mx_keep_columns<COLUMNS_TURNED>(t, bytes, kept);
    mx_store_columns<WHOLE, 0, 1>(t, words, factor, payload);
}

template <bool WHOLE>
MX_DEVICE void quantize_rows(const MxTile& t, const mx_u32 (&words)[ROWS][4], mx_u8* payload,
                             mx_u8* kept) {
    mx_u8* to = mx_row_place(t, payload);
#pragma unroll
    for (int row = 0; row < ROWS; row += WORD) {
        mx_u8 bytes[WORD];
        mx_u32 factor[WORD];
        mx_row_factors(t, words, row, factor, bytes);
        mx_keep_rows<ROWS_TURNED>(t, row, bytes, kept);
#pragma unroll
        for (int at = 0; at < WORD; ++at) {
            mx_store_row<WHOLE>(t, words[row + at], row + at, factor + at, 0, to);
            to += t.columns;
        }
    }
}

// All loads are under way at once; columns need every row, rows only their own. Columns first takes
// 158 registers: 3 thread blocks of 128 threads on a multiprocessor. Rows first takes 115: 4.
template <bool WHOLE>
MX_DEVICE void quantize(const MxTile& t, const mx_u8* x, mx_i64 row_stride, mx_i64 matrix_stride,
                        mx_u8* row_payload, mx_u8* column_payload, mx_u8* row_kept,
                        mx_u8* column_kept) {
    mx_u32 words[ROWS][4];
    mx_load_tile<WHOLE>(t, x, row_stride, matrix_stride, words);
    if (MX_COLUMNS_FIRST) quantize_columns<WHOLE>(t, words, column_payload, column_kept);
    quantize_rows<WHOLE>(t, words, row_payload, row_kept);
    if (!MX_COLUMNS_FIRST) quantize_columns<WHOLE>(t, words, column_payload, column_kept);
}

extern "C" __global__ void __launch_bounds__(THREADS, MX_RESIDENT)
    quantize_both(const mx_u8* x, mx_u8* row_payload, mx_u8* row_scale, mx_u8* column_payload,
                  mx_u8* column_scale, mx_i64 rows, mx_i64 columns, mx_i64 row_stride,
                  mx_i64 matrix_stride, mx_i64 row_scale_stride, mx_i64 column_scale_stride,
                  mx_i64 down, mx_i64 across, mx_i64 flags) {
    __shared__ __align__(16) mx_u8 row_kept[RowScales::P * RowScales::Q];
    __shared__ __align__(16) mx_u8 column_kept[ColumnScales::P * ColumnScales::Q];
    const MxTile t = mx_tile(rows, columns, down, across, flags);
    if (MX_FULL || mx_whole(t)) {
        quantize<true>(t, x, row_stride, matrix_stride, row_payload, column_payload, row_kept,
                       column_kept);
    } else {
        quantize<false>(t, x, row_stride, matrix_stride, row_payload, column_payload, row_kept,
                        column_kept);
    }
    __syncthreads();
    mx_store_scales<MX_1X32, MX_LAYOUT, ROWS_TURNED>(t, row_kept,
                                                     row_scale + t.matrix * row_scale_stride);
    mx_store_scales<MX_32X1, MX_COLUMN_LAYOUT, COLUMNS_TURNED>(
        t, column_kept, column_scale + t.matrix * column_scale_stride);
}
