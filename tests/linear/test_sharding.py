"""Sharded quantization has the bytes of the unsharded one: two processes on the CPU."""

from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("torch.distributed.tensor")

import torch.multiprocessing as mp

from mxkernels.quantize.sharding import cuttable, placements
from tests.linear import sharded_rank


@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="torch has no gloo")
def test_two_processes_get_the_unsharded_bytes(tmp_path):
    mp.spawn(sharded_rank.run, (str(tmp_path / "store"),), nprocs=sharded_rank.RANKS)


@pytest.mark.gpu
def test_two_gpus_get_the_unsharded_bytes(tmp_path):
    if torch.cuda.device_count() < sharded_rank.RANKS:
        pytest.skip("needs two GPUs")
    mp.spawn(sharded_rank.run, (str(tmp_path / "store"), "cuda"), nprocs=sharded_rank.RANKS)


def test_a_cut_inside_a_block_is_no_placement():
    x = SimpleNamespace(shape=(64, 96), mesh=SimpleNamespace(size=lambda: 2))
    along = placements(x, [((1, 32), "plain")], 0)
    assert [inputs[0].dim for _, inputs in along[1:]] == [0]
    x.shape = (64, 128)
    assert [i[0].dim for _, i in placements(x, [((1, 32), "plain")], 0)[1:]] == [0, 1]
    assert len(placements(x, [((1, 32), "swizzle_32_4_4")], 0)) == 1


@pytest.mark.parametrize(
    ("shape", "block", "ranks", "dims"),
    [
        ((7, 64), (1, 32), 2, [0, 1]),
        ((7, 64), (1, 32), 4, [0]),
        ((128, 7), (32, 1), 4, [0, 1]),
        ((96, 64), (32, 32), 2, [1]),
        ((3, 40, 64), (32, 1), 2, [0, 2]),
    ],
)
def test_which_dimensions_can_be_cut(shape, block, ranks, dims):
    assert cuttable(shape, block, ranks) == dims
