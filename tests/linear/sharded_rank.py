"""What each of the processes of `test_sharding.py` does: its shard against the unsharded bytes."""

import os

import torch
import torch.distributed as dist

RANKS = 2
CASES = (
    # shape, placement of x (None: replicated), block, order, layout, where the shards must lie
    ((64, 128), 0, (1, 32), "row", "plain", (0, 0)),
    ((64, 128), 1, (1, 32), "row", "plain", (1, 1)),
    ((64, 128), 0, (32, 1), "col", "plain_t", (0, 1)),
    ((64, 128), 1, (32, 1), "col", "plain_t", (1, 0)),
    ((64, 128), 1, (32, 32), "row", "plain", (1, 1)),
    ((6, 32), 0, (1, 32), "row", "plain_t", (0, 1)),
    ((4, 64, 64), 0, (32, 1), "col", "swizzle_32_4_4", (0, 0)),
    ((64, 128), None, (1, 32), "row", "plain", (None, None)),
    # a shard would end inside a block, or inside a tile of scales: replicated first
    ((64, 96), 1, (1, 32), "row", "plain", (None, None)),
    ((32, 64), 0, (32, 1), "col", "plain_t", (None, None)),
    ((64, 128), 0, (1, 32), "row", "swizzle_32_4_4", (None, None)),
)


def placed(dim):
    from torch.distributed.tensor import Replicate, Shard

    return Replicate() if dim is None else Shard(dim)


def shard_of(x, dim, rank):
    return x if dim is None else x.chunk(RANKS, dim)[rank]


def check(rank, mesh, case, device, backend):
    from torch.distributed.tensor import DTensor

    import mxkernels

    shape, dim, block, order, layout, wanted = case
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(device)
    whole = mxkernels.quantize(
        x, block=block, payload_order=order, scale_layout=layout, backend="reference"
    )
    local = shard_of(x, dim, rank).contiguous()
    sharded = DTensor.from_local(local, mesh, [placed(dim)], run_check=False)
    result = torch.ops.mxkernels.quantize(sharded, backend, "rceil", block, order, layout)
    for part, expected, place in zip(result, whole, wanted, strict=True):
        assert part.placements == (placed(place),), (case, part.placements)
        assert part.shape == expected.shape, case
        mine = shard_of(expected.view(torch.uint8), place, rank)
        found = part.to_local().view(torch.uint8)
        assert torch.equal(found, mine), case


def check_both(rank, mesh, device, backend):
    from torch.distributed.tensor import DTensor, Shard

    x = torch.randn(64, 128, generator=torch.Generator().manual_seed(2)).to(device)
    arguments = (backend, "rceil", "plain", "plain_t")
    whole = torch.ops.mxkernels.quantize_both(x, "reference", *arguments[1:])
    local = x.chunk(RANKS)[rank]
    sharded = DTensor.from_local(local, mesh, [Shard(0)], run_check=False)
    result = torch.ops.mxkernels.quantize_both(sharded, *arguments)
    for part, expected, place in zip(result, whole, (0, 0, 0, 1), strict=True):
        if part.placements == (Shard(place),):
            expected = shard_of(expected.view(torch.uint8), place, rank)
        else:
            raise AssertionError(part.placements)
        assert torch.equal(part.to_local().view(torch.uint8), expected)


def run(rank, store, kind="cpu"):
    """One of RANKS processes: mxref on the CPU over gloo, or Triton on a GPU each over nccl."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    device, backend = torch.device("cpu"), "reference"
    if kind == "cuda":
        device, backend = torch.device("cuda", rank), "triton"
        torch.cuda.set_device(device)
    transport = "gloo" if kind == "cpu" else "nccl"
    dist.init_process_group(transport, init_method=f"file://{store}", rank=rank, world_size=RANKS)
    try:
        from torch.distributed.device_mesh import init_device_mesh

        from mxkernels.quantize.sharding import register

        register()
        register()
        mesh = init_device_mesh(kind, (RANKS,))
        for case in CASES:
            check(rank, mesh, case, device, backend)
        check_both(rank, mesh, device, backend)
    finally:
        dist.destroy_process_group()
