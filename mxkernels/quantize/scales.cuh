// The scale bytes of a tile: gathered in shared memory as they will be stored, then copied out in
// the order of addresses.
#pragma once

#include "tile.cuh"

enum MxLayout { MX_PLAIN = 0, MX_PLAIN_T = 1, MX_SWIZZLE = 2 };

// The bytes of a tile for blocks BLOCK, as a matrix of P x Q bytes whose rows follow the stored
// matrix, or the matrix S of a swizzle; TURNED: that is the transpose of the logical one.
template <int BLOCK, bool TURNED>
struct MxScales {
    static constexpr int DOWN = BLOCK == MX_1X32 ? TILE_ROWS : TILE_ROWS / 32;
    static constexpr int ACROSS = BLOCK == MX_32X1 ? TILE_COLUMNS : TILE_COLUMNS / 32;
    static constexpr int P = TURNED ? ACROSS : DOWN, Q = TURNED ? DOWN : ACROSS;

    // The place of the logical entry (down, across) of the tile.
    MX_DEVICE int at(int down, int across) {
        return TURNED ? across * Q + down : down * Q + across;
    }
};

MX_DEVICE int mx_left(mx_i64 size, int most) { return size < most ? (int)size : most; }

// Copy a tile of P x Q bytes to its place in a matrix of p_size x q_size.
template <int P, int Q>
MX_DEVICE void mx_store_matrix(const mx_u8* from, mx_u8* to, mx_i64 p0, mx_i64 q0, mx_i64 p_size,
                               mx_i64 q_size) {
    constexpr int UNIT = !MX_FULL ? 1 : Q < 4 ? Q : 4, UNITS = P * Q / UNIT;
    to += p0 * q_size + q0;
    const int p_left = mx_left(p_size - p0, P), q_left = mx_left(q_size - q0, Q);
#pragma unroll
    for (int start = 0; start < UNITS; start += THREADS) {
        const int unit = start + threadIdx.x;
        if (UNITS % THREADS != 0 && unit >= UNITS) break;
        const int p = unit / (Q / UNIT), q = unit % (Q / UNIT) * UNIT;
        if (MX_FULL || (p < p_left && q < q_left)) {
            mx_copy<UNIT>(to + p * q_size + q, from + p * Q + q);
        }
    }
}

// Copy a tile of S[r_size, c_size] to its place in tiles of 128 x 4 bytes, padding with zeros.
// Each row of `from` is meant for REPEAT rows of S.
template <int P, int Q, int REPEAT>
MX_DEVICE void mx_store_swizzled(const mx_u8* from, mx_u8* to, mx_i64 r0, mx_i64 c0, mx_i64 r_size,
                                 mx_i64 c_size) {
    constexpr int UNIT = Q < 4 ? Q : 4, HIGH = P * REPEAT, UNITS = HIGH * Q / UNIT;
    constexpr int GROUPS = HIGH < 128 ? HIGH / 32 : 4;  // of 32 rows, in one tile of S
    const mx_i64 wide = (c_size + 3) >> 2;
    to += ((r0 >> 7) * wide + (c0 >> 2)) * 512;
    // Where this tile begins inside a tile of S: only where it is smaller.
    const int r_in = HIGH % 128 == 0 ? 0 : (int)(r0 & 127), c_in = Q % 4 == 0 ? 0 : (int)(c0 & 3);
    const int real = mx_left(r_size - r0, HIGH);
    const int padded = mx_left(((r_size + 127) & ~(mx_i64)127) - r0, HIGH);
    const int covered = mx_left(wide * 4 - c0, Q);
#pragma unroll
    for (int start = 0; start < UNITS; start += THREADS) {
        const int unit = start + threadIdx.x;
        if (UNITS % THREADS != 0 && unit >= UNITS) break;
        const int group = unit % GROUPS, within = unit / GROUPS % 32, rest = unit / (32 * GROUPS);
        const int p = rest / (Q / UNIT) * 128 + group * 32 + within, q = rest % (Q / UNIT) * UNIT;
        if (!MX_FULL && (p >= padded || q >= covered)) continue;
        const int r = r_in + p, c = c_in + q;
        mx_u8* place = to + ((r >> 7) * wide + (c >> 2)) * 512 + (r & 31) * 16 + (r >> 5 & 3) * 4 + (c & 3);
        if (MX_FULL || p < real) {
            mx_copy<UNIT>(place, from + p / REPEAT * Q + q);
        } else {
            const mx_u32 zero = 0;
            mx_copy<UNIT>(place, (const mx_u8*)&zero);
        }
    }
}

// Copy the gathered bytes of a tile to `scale`, which begins at the tile's matrix.
template <int BLOCK, int LAYOUT, bool TURNED>
MX_DEVICE void mx_store_scales(const MxTile& t, const mx_u8* from, mx_u8* scale) {
    typedef MxScales<BLOCK, TURNED> S;
    const mx_i64 down = BLOCK == MX_1X32 ? t.rows : (t.rows + 31) >> 5;
    const mx_i64 across = BLOCK == MX_32X1 ? t.columns : (t.columns + 31) >> 5;
    const mx_i64 row = BLOCK == MX_1X32 ? t.first_row : t.first_row >> 5;
    const mx_i64 column = BLOCK == MX_32X1 ? t.first_column : t.first_column >> 5;
    if (LAYOUT == MX_SWIZZLE) {
        constexpr int REPEAT = BLOCK == MX_32X32 ? 32 : 1;
        mx_store_swizzled<S::P, S::Q, REPEAT>(
            from, scale, (TURNED ? column : row) * REPEAT, TURNED ? row : column,
            TURNED ? t.columns : t.rows, TURNED ? down : across);
    } else {
        mx_store_matrix<S::P, S::Q>(from, scale, TURNED ? column : row, TURNED ? row : column,
                                    TURNED ? across : down, TURNED ? down : across);
    }
}

// Gather the bytes of WORD rows from `row` on, blocks (1, 32): one lane of those that share them.
template <bool TURNED>
MX_DEVICE void mx_keep_rows(const MxTile& t, int row, const mx_u8* bytes, mx_u8* kept) {
    if (t.column % 32 != 0) return;
#pragma unroll
    for (int at = 0; at < WORD; ++at) {
        kept[MxScales<MX_1X32, TURNED>::at(t.row + row + at, t.column / 32)] = bytes[at];
    }
}

template <bool TURNED>
MX_DEVICE void mx_keep_columns(const MxTile& t, const mx_u8 (&bytes)[VECTOR], mx_u8* kept) {
    if (t.row % 32 != 0) return;
#pragma unroll
    for (int at = 0; at < VECTOR; ++at) {
        kept[MxScales<MX_32X1, TURNED>::at(t.row / 32, t.column + at)] = bytes[at];
    }
}

template <bool TURNED>
MX_DEVICE void mx_keep_block(const MxTile& t, mx_u8 byte, mx_u8* kept) {
    if (t.row % 32 != 0 || t.column % 32 != 0) return;
    kept[MxScales<MX_32X32, TURNED>::at(t.row / 32, t.column / 32)] = byte;
}
