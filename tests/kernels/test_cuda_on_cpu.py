"""The CUDA kernels run on the CPU through a shim, and every byte compared with mxref.

This finds wrong indexing, masks and padding where no GPU is. The arithmetic here is the portable
form of mx_arithmetic.cuh; a GPU's instructions are judged on a GPU.
"""

import shutil
import subprocess
from itertools import product

import pytest
import torch

from mxkernels.quantize.canonical import is_transposed
from mxkernels.quantize.cuda_configs import CudaFlat, CudaTile
from mxkernels.quantize.launch import launch
from mxkernels.quantize.shapes import SCALE_LAYOUTS
from mxkernels.registry import find
from tests.kernels.cuda_host import HostKernel, on_cpu  # noqa: F401
from tests.kernels.guarded import (
    DIM0,
    POISONS,
    GuardedBuffer,
    Way,
    assert_bytes,
    expected,
    launch_guarded,
    ways_of,
)
from tests.kernels.inputs import STRIDES, filled, strided
from tests.kernels.pairwise import pairwise

SPEC = find("quantize", "cuda")
TILES = (
    CudaTile(16, 4, 1, 1),
    CudaTile(16, 8, 1, 2, rows_first=False),
    CudaTile(32, 4, 1, 1),
    CudaTile(8, 4, 2, 1),
)
SHAPES = ((33, 70), (2, 128, 256), (3, 130, 140), (2, 64, 31))
LAYOUTS = tuple(product(SCALE_LAYOUTS, repeat=2))
ROWS = pairwise(
    ways_of(SPEC), TILES, SHAPES, STRIDES[:4], SPEC.recipes, SPEC.dtypes, (0, 1), candidates=12
)
ROWS = [
    row if at % 2 == 0 else pytest.param(*row, marks=pytest.mark.exhaustive)
    for at, row in enumerate(ROWS)
]
FLATS = ((4, 1, (5, 64)), (2, 2, (70, 96)), (8, 1, (2, 40, 32)))


def written(x, recipe, way, config):
    shapes = [part.shape for part in expected(x, recipe, way)]
    return launch_guarded(SPEC.launch, x, shapes, recipe, way, config, POISONS[:1])


@pytest.mark.parametrize(("way", "config", "shape", "strides", "recipe", "dtype", "offset"), ROWS)
def test_tiles_have_the_right_bytes(on_cpu, way, config, shape, strides, recipe, dtype, offset):  # noqa: F811
    x = strided(shape, strides, 8 * offset, lambda n: filled(n, "poisoned", dtype, n))
    got = written(x, recipe, way, config)
    assert_bytes(got, expected(x, recipe, way))


@pytest.mark.parametrize("dtype", SPEC.dtypes)
@pytest.mark.parametrize(("chunks", "warps", "shape"), FLATS)
def test_blocks_that_follow_have_the_right_bytes(on_cpu, dtype, chunks, warps, shape):  # noqa: F811
    x = filled(torch.Size(shape).numel(), "thresholds", dtype, 5).view(shape)
    config = CudaFlat(chunks, warps)
    got = written(x, "rceil", DIM0, config)
    assert_bytes(got, expected(x, "rceil", DIM0))
    (plan,) = on_cpu._PLANS.values()
    assert plan.launch.block == 32 * warps, "the kernel without tiles was not taken"


@pytest.mark.parametrize("shape", [(128, 256), (33, 70), (2, 140, 72)])
@pytest.mark.parametrize("layouts", LAYOUTS[::4], ids=str)
@pytest.mark.parametrize("swapped", [False, True])
def test_both_directions_have_the_right_bytes(on_cpu, shape, layouts, swapped):  # noqa: F811
    dtype = SPEC.dtypes[sum(map(len, layouts)) % 3]
    x = strided(
        shape, "swapped" if swapped else "contiguous", 0, lambda n: filled(n, "poisoned", dtype, n)
    )
    assert is_transposed(x) == swapped
    wanted = [
        expected(x, "even", Way((1, 32), "row", layouts[0])),
        expected(x, "even", Way((32, 1), "col", layouts[1])),
    ]
    (a, b), (c, d) = wanted
    buffers = [GuardedBuffer(part.shape, POISONS[0], "cpu") for part in (a, b, c.mT, d)]
    inner = tuple(each.inner for each in buffers)
    launch(on_cpu.plan_both_cuda, x, inner, "even", layouts, TILES[0])
    for buffer in buffers:
        buffer.assert_guards()
    first, second, third, fourth = (each.inner for each in buffers)
    assert_bytes((first, second), (a, b))
    assert_bytes((third.mT, fourth), (c, d))


def test_a_grid_that_is_folded_has_the_right_bytes(on_cpu, monkeypatch):  # noqa: F811
    """As for more than 65,535 matrices: the place of a tile comes from one number."""
    monkeypatch.setattr(on_cpu, "MOST_DOWN", 1)
    way = Way((32, 1), "col", "swizzle_32_4_4")
    for config in TILES[:2]:
        x = filled(3 * 130 * 140, "one binade", torch.bfloat16, 9).view(3, 130, 140)
        assert_bytes(written(x, "floor", way, config), expected(x, "floor", way))
    assert all(plan.arguments[-1] & on_cpu.FOLDED for plan in on_cpu._PLANS.values())


def test_a_wrong_launch_is_seen(on_cpu):  # noqa: F811
    """Can the comparison fail? A plan made for another rule."""
    x = filled(64 * 64, "one binade", torch.bfloat16, 3).view(64, 64)
    got = written(x, "floor", DIM0, None)
    with pytest.raises(AssertionError, match="differ"):
        assert_bytes(got, expected(x, "rceil", DIM0))


def test_threads_that_synchronise_unequally_are_seen(tmp_path):
    if not shutil.which("g++"):
        pytest.skip("no g++ on PATH")
    program = tmp_path / "unequal"
    source = (
        '#include "cuda_on_cpu.h"\nstatic void body() { if (threadIdx.x) __syncthreads(); }\n'
        "int main() { long long grid[3] = {1, 1, 1}; shim::launch(grid, 32, body); }\n"
    )
    command = ["g++", f"-I{HostKernel.HERE}", "-x", "c++", "-", "-o", str(program)]
    subprocess.run(command, input=source, text=True, check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 3
    assert "synchronise unequally" in done.stderr
