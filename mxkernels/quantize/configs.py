"""The configurations of the Triton kernels: few, chosen by hand, hashable."""

from typing import NamedTuple

from mxkernels.quantize.canonical import is_along, transposed_variant


class FlatConfig(NamedTuple):
    """How many blocks of 32 one program of the flat (1, 32) kernel takes, and its warps.

    A thread holds `vector` neighbouring elements. At 8, 16-bit inputs are loaded 16 bytes a thread
    in one piece and codes stored 8 bytes a thread; at 16, both are 16 bytes and loads are two.
    """

    blocks: int
    warps: int
    vector: int = 16


class TileConfig(NamedTuple):
    """A tile of `rows` x `columns` elements for one program, and its warps.

    `kept` neighbouring rows (a power of two, at most 32; where a payload is transposed, at least 4)
    stay in one thread; the other rows of 32 are spread over threads. `vector` as in FlatConfig.
    Tiles follow one another down a column of tiles where `rows_first`. `stream`: what is loaded
    leaves the cache first. `registers`: a thread takes at most so many.
    """

    rows: int
    columns: int
    warps: int
    kept: int
    vector: int = 8
    rows_first: bool = True
    stream: bool = False
    registers: int | None = None


FLAT = (
    FlatConfig(64, 4, vector=8),
    FlatConfig(32, 4, vector=8),
    FlatConfig(128, 8, vector=8),
    FlatConfig(64, 4),
)
"""Blocks along rows that follow one another, written in the same order."""


class Family(NamedTuple):
    """The configurations meant for some variants, and which of them is taken unasked.

    `small`: for up to SMALL elements, where large tiles leave multiprocessors idle. `float32`: for
    inputs of 4 bytes, which take twice the registers.
    """

    configs: tuple[TileConfig, ...]
    usual: TileConfig
    float32: TileConfig
    small: TileConfig

    def default(self, numel: int, itemsize: int) -> TileConfig:
        """The configuration taken when the caller names none."""
        if numel <= SMALL:
            return self.small
        return self.float32 if itemsize == 4 else self.usual


SMALL = 1 << 22
"""A tile of 128 x 128 for each of about two programs on every multiprocessor of an H200."""

_ALONG = (
    TileConfig(32, 128, 4, 1, rows_first=False),
    TileConfig(64, 128, 8, 1, rows_first=False),
    TileConfig(32, 256, 8, 1, rows_first=False),
    TileConfig(128, 128, 16, 1, rows_first=False),
    TileConfig(32, 64, 4, 1, rows_first=False),
)
ALONG = Family(_ALONG, usual=_ALONG[0], float32=_ALONG[0], small=_ALONG[4])
"""(1, 32), payload in the order of the input."""

_ACROSS = (
    TileConfig(128, 128, 4, 16, rows_first=False),
    TileConfig(64, 128, 4, 8, rows_first=False),
    TileConfig(128, 64, 4, 8, rows_first=False),
    TileConfig(64, 128, 2, 16, rows_first=False),
    TileConfig(32, 256, 2, 16, rows_first=False),
    TileConfig(64, 64, 2, 8, rows_first=False),
    TileConfig(32, 128, 4, 4),
)
ACROSS = Family(_ACROSS, usual=_ACROSS[0], float32=_ACROSS[1], small=_ACROSS[5])
"""(32, 1), payload in the order of the input."""

SQUARE = ACROSS._replace(small=_ACROSS[6])
"""(32, 32), payload in the order of the input."""

_TURNED = (
    TileConfig(128, 128, 4, 16),
    TileConfig(64, 128, 2, 16),
    TileConfig(128, 64, 2, 16),
    TileConfig(128, 128, 8, 8),
    TileConfig(64, 128, 4, 8),
    TileConfig(128, 128, 4, 16, rows_first=False),
    TileConfig(128, 128, 4, 16, stream=True),
    TileConfig(64, 64, 2, 8),
    TileConfig(64, 64, 4, 4),
)
TURNED = Family(_TURNED, usual=_TURNED[0], float32=_TURNED[3], small=_TURNED[7])
"""(32, 1), payload transposed."""

SQUARE_TURNED = TURNED._replace(small=_TURNED[8])
"""(32, 32), payload transposed."""

_ALONG_TURNED = (_TURNED[3], _TURNED[4], TileConfig(32, 128, 4, 8))
ALONG_TURNED = Family(
    _ALONG_TURNED, usual=_ALONG_TURNED[0], float32=_ALONG_TURNED[0], small=_ALONG_TURNED[2]
)
"""(1, 32), payload transposed."""

_BOTH = (
    # Three programs a multiprocessor: unbounded, some rules and dtypes take 182 or 254 registers.
    TileConfig(128, 128, 4, 16, registers=168),
    TileConfig(128, 128, 4, 16),
    TileConfig(128, 128, 8, 8),
    TileConfig(128, 64, 4, 8),
    TileConfig(64, 128, 4, 8),
    TileConfig(64, 64, 2, 8),
    TileConfig(128, 128, 8, 8, rows_first=False),
    TileConfig(128, 64, 4, 8, stream=True),
)
BOTH = Family(_BOTH, usual=_BOTH[0], float32=_BOTH[2], small=_BOTH[5])
"""Both directions from one read."""

FAMILIES = (ALONG, ACROSS, SQUARE, TURNED, SQUARE_TURNED, ALONG_TURNED)

TRITON = tuple(dict.fromkeys((*FLAT, *(each for family in FAMILIES for each in family.configs))))
"""What the quantizer may be asked for by number."""

FLAT_INTERPRETED = FlatConfig(blocks=4096, warps=4)
"""The interpreter's own: a program costs it some 7 ms almost whatever its tile."""

TILE_INTERPRETED = 1 << 18
"""The same for tiles: so many elements, in the proportions of the matrix."""


def flat_default(blocks: int, *, interpret: bool) -> FlatConfig:
    """The configuration taken when the caller names none; `blocks` are those of the tensor."""
    return FLAT_INTERPRETED if interpret and blocks > FLAT[0].blocks else FLAT[0]


def family(block: tuple[int, int], *, turned: bool) -> Family:
    """The configurations meant for these blocks of an input whose columns have stride 1."""
    if block[0] == 1:
        return ALONG_TURNED if turned else ALONG
    if block[1] == 1:
        return TURNED if turned else ACROSS
    return SQUARE_TURNED if turned else SQUARE


def choices(
    block: tuple[int, int], payload_order: str, scale_layout: str, input_order: str = "n"
) -> tuple[FlatConfig | TileConfig, ...]:
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
    return family(block, turned=turned).configs


def power_of_two(size: int) -> int:
    """The smallest power of two that is not below `size`.

    >>> power_of_two(1), power_of_two(33)
    (1, 64)
    """
    return 1 << max(size - 1, 0).bit_length()


def tile_interpreted(rows: int, columns: int) -> TileConfig:
    """One tile for a small matrix and its padded scales, tall or broad ones for a large one."""
    height = min(max(power_of_two(rows), 128), 512)
    width = min(max(power_of_two(columns), 128), TILE_INTERPRETED // height)
    return TileConfig(height, width, 4, 8)
