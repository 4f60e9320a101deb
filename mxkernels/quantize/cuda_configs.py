"""The configurations of the CUDA kernels: few, chosen by hand, hashable."""

from typing import NamedTuple

from mxkernels.quantize.canonical import is_along, transposed_variant


class CudaFlat(NamedTuple):
    """`chunks` pieces of 16 bytes for each thread of `warps` warps, of blocks that simply follow.

    Rows that are no whole blocks, or not aligned, are work for tiles whatever is asked for.
    """

    chunks: int
    warps: int


class CudaTile(NamedTuple):
    """A thread holds `rows` rows x 8 elements, a warp is `lanes_down` lanes high.

    `rows_first`: tiles follow one another down a column of tiles. `resident`: thread blocks that a
    multiprocessor shall hold, which bounds registers. `columns_first`: of both directions, the
    transposed payload is made first. Inputs of 4 bytes take twice the threads for the same tile.
    """

    rows: int
    lanes_down: int
    warps_down: int
    warps_across: int
    rows_first: bool = True
    resident: int = 1
    columns_first: bool = False

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a tile.

        >>> CudaTile(16, 8, 1, 4).tile
        (128, 128)
        """
        return (
            self.rows * self.lanes_down * self.warps_down,
            32 // self.lanes_down * 8 * self.warps_across,
        )

    def for_size(self, itemsize: int, tall: bool) -> "CudaTile":
        """The same tile for elements of this size; `tall`: 32 rows of a block lie in one warp."""
        if itemsize == 2:
            return self
        wide = self._replace(resident=1)
        if self.lanes_down // 2 >= (32 // self.rows if tall else 1):
            return wide._replace(lanes_down=self.lanes_down // 2, warps_down=self.warps_down * 2)
        return wide._replace(warps_across=self.warps_across * 2)


SQUARE, BROAD = CudaTile(8, 4, 2, 1), CudaTile(8, 4, 1, 2)
"""For small tensors, 64 x 64 or 32 x 128: more thread blocks than multiprocessors."""

FLAT = (CudaFlat(4, 4), CudaFlat(4, 8), CudaFlat(2, 8))
"""Blocks along rows that follow one another, written in the same order."""

ALONG = (
    CudaTile(16, 1, 8, 1, rows_first=False),
    CudaTile(8, 1, 8, 1, rows_first=False),
)
"""(1, 32), payload in the order of the input."""

ACROSS = (
    CudaTile(32, 1, 4, 1, rows_first=False),
    CudaTile(16, 2, 2, 2, rows_first=False),
)
"""Blocks over 32 rows, payload in the order of the input."""

TURNED = (
    CudaTile(16, 4, 4, 2),
    CudaTile(16, 4, 2, 2),
    CudaTile(16, 8, 1, 4),
)
"""Payload transposed."""

BOTH = (
    CudaTile(16, 2, 4, 2, rows_first=False),
    CudaTile(16, 4, 4, 2, rows_first=False),
    CudaTile(16, 4, 2, 2, rows_first=False),
    CudaTile(16, 4, 2, 2, rows_first=False, columns_first=True),
    CudaTile(8, 4, 4, 2),
    SQUARE,
)
"""Both directions from one read."""

BOTH_IN_INTEGERS = CudaTile(8, 4, 4, 2)
"""Taken below sm_89: rounding in integers leaves no registers for 16 rows in a thread."""

SMALL = 1 << 22
"""Up to so many codes written, large tiles leave multiprocessors idle: the last one is taken."""

CUDA = tuple(dict.fromkeys((*FLAT, *ALONG, *ACROSS, *TURNED, SQUARE, BROAD)))
"""What the quantizer may be asked for by number."""


def family(block: tuple[int, int], *, turned: bool) -> tuple[CudaTile, ...]:
    """The configurations meant for these blocks of an input whose columns have stride 1."""
    if turned:
        return (*TURNED, SQUARE if block[1] == 1 else BROAD)
    if block[0] == 1:
        return (*ALONG, SQUARE)
    # fp16 in blocks of (32, 32) spills with 32 rows in a thread.
    return (*ACROSS, SQUARE) if block[1] == 1 else (*ACROSS[1:], BROAD)


def default(meant: tuple[CudaTile, ...], codes: int, *, hardware: bool = True) -> CudaTile:
    """The configuration taken when the caller names none, for so many codes to be written.

    `hardware`: the GPU casts to e4m3 itself. Rounding in integers leaves no registers for 32 rows
    in a thread.
    """
    if not hardware:
        meant = tuple(each for each in meant if each.rows < 32)
    return meant[-1] if codes <= SMALL else meant[0]


def choices(
    block: tuple[int, int], payload_order: str, scale_layout: str, input_order: str = "n"
) -> tuple[CudaFlat | CudaTile, ...]:
    """The configurations worth timing for a variant; every other one gives the same bytes.

    >>> choices((32, 1), "col", "plain_t", "t") == FLAT
    True
    """
    turned = payload_order == "col"
    if input_order == "t":
        block, turned, scale_layout = transposed_variant(
            block, turned=turned, scale_layout=scale_layout
        )
    if is_along(block, turned=turned, scale_layout=scale_layout):
        return FLAT
    return family(block, turned=turned)
