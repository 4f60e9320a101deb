"""Reads vectors.txt (e4m3, layout plain) and verifies every byte by a way of its own, in numpy."""

import math
import sys
from pathlib import Path

import numpy as np

CODES = np.array([math.ldexp(8 * (c > 7) + c % 8, max(c // 8, 1) - 10) for c in range(127)])
RULES = {  # the scale byte as integers of the bits of amax
    "floor": lambda bits: (bits >> 23) - 8,
    "rceil": lambda bits: (bits - (bits == 0x04600001) - 0x04600000 + 0x7FFFFF) >> 23,
    "ceil": lambda bits: ((bits + 0x7FFFFF) >> 23) - 8,
    "even": lambda bits: ((bits + 0x80000) >> 23) - 8,
}


def tiles(x, block):
    """(matrices, row blocks, rows, column blocks, columns), missing elements zero."""
    x = x.reshape(math.prod(x.shape[:-2]), *(1, *x.shape)[-2:])
    x = np.pad(x, ((0, 0), (0, -x.shape[1] % block[0]), (0, -x.shape[2] % block[1])))
    return x.reshape(len(x), x.shape[1] // block[0], block[0], x.shape[2] // block[1], block[1])


def expected(recipe, block, dtype, bits):
    kinds = (np.uint16, np.float16) if dtype == "fp16" else (np.uint32, np.float32)
    bits = (bits << 16 if dtype == "bf16" else bits).astype(kinds[0])
    x = tiles(bits.view(kinds[1]), block).astype(np.float32)
    amax = (x.view(np.uint32) & 0x7FFFFFFF).astype(np.int64).max((2, 4), keepdims=True)
    byte = np.where(amax >= 255 << 23, 255, np.maximum(RULES[recipe](amax), 0))
    finite = np.abs(np.where(np.isfinite(x), x, 0)).astype(np.float64)
    size = np.ldexp(finite, 127 - byte).clip(max=448)
    above = np.searchsorted(CODES, size).clip(1)
    past = 2 * size - CODES[above] - CODES[above - 1]  # 0 at a tie: the even code
    code = above - ((past < 0) | ((past == 0) & (above % 2 == 1)))
    return byte, np.where(byte == 255, 0x7F, code | np.signbit(x) * 0x80)


def main(path):
    words = iter(Path(path).read_text().split())
    head = [next(words) for _ in range(17)]
    assert [head[1], head[7], head[12]] == ["mxref-vectors-1", "e4m3", "plain"], head
    for _ in range(int(head[16])):
        name, dtype = [next(words) for _ in range(4)][1::2]
        ranks = (int((next(words), next(words))[1]) for _ in range(2))
        shape, grid = ([int(next(words)) for _ in range(rank)] for rank in ranks)
        counts = (math.prod({"scale": grid}.get(next(words), shape)) for _ in range(3))
        lists = ([int(next(words), 16) for _ in range(count)] for count in counts)
        x, payload, scale = (np.array(each, np.int64) for each in lists)
        block = int(head[9]), int(head[10])
        byte, codes = expected(head[5], block, dtype, x.reshape(shape))
        differ = tiles(payload.reshape(shape), block) != codes
        if differ[tiles(x.reshape(shape) >= 0, block)].any() or (byte.flat != scale).any():
            sys.exit(f"case {name} of {dtype}")
    sys.stdout.write(f"{head[5]} {head[16]} cases, torch loaded: {'torch' in sys.modules}\n")


if __name__ == "__main__":
    main(sys.argv[1])
