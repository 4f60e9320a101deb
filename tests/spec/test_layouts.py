"""Layouts beyond the handed cases: the offset formula itself, every rank, padding, groups."""

import pytest
import torch

from mxref import layouts
from mxref.tiles import logical_shape

SHAPES = [(33,), (1, 1), (129, 160), (300, 90), (2, 130, 64), (3, 2, 5, 200), (0, 64), (2, 0, 64)]
BLOCKS = [(1, 32), (32, 1), (32, 32)]


def scales(shape: tuple[int, ...], block: tuple[int, int]) -> torch.Tensor:
    logical = logical_shape(shape, block)
    count = torch.Size(logical).numel()
    return (torch.arange(count) * 37 % 251 + 1).to(torch.uint8).reshape(logical)


def matrices(scale: torch.Tensor, shape, block, contract: int) -> list[torch.Tensor]:
    """S[R, C] of every leading index, entry by entry from the definition."""
    if not scale.numel():
        return []
    rows = shape[-2] if len(shape) > 1 else 1
    size, blocks = (rows, -(-shape[-1] // 32)) if contract == -1 else (shape[-1], -(-rows // 32))
    found = []
    for matrix in scale.flatten(0, -3) if scale.dim() > 2 else [scale.reshape(-1, scale.shape[-1])]:
        s = torch.zeros(size, blocks, dtype=torch.uint8)
        for r in range(size):
            for c in range(blocks):
                kept = r // 32 if block == (32, 32) else r
                s[r, c] = matrix[kept, c] if contract == -1 else matrix[c, kept]
        found.append(s)
    return found


def swizzled(s: torch.Tensor) -> list[int]:
    """offset(r, c) as cuBLAS documents it, one byte at a time."""
    rows, columns = s.shape
    padded = -(-columns // 4) * 4
    out = [0] * (-(-rows // 128) * 128 * padded)
    for r in range(rows):
        for c in range(columns):
            tile = (r // 128) * (padded // 4) + c // 4
            out[tile * 512 + (r % 32) * 16 + ((r % 128) // 32) * 4 + c % 4] = int(s[r, c])
    return out


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("contract", [-1, -2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_swizzle_follows_the_offset_formula(shape, block, contract):
    fixed = {(1, 32): -1, (32, 1): -2}.get(block, contract)
    if fixed != contract or (len(shape) == 1 and block[0] > 1):
        pytest.skip("not a direction of this block")
    scale = scales(shape, block)
    stored = layouts.encode(scale, "swizzle_32_4_4", block=block, shape=shape, contract=contract)
    expected = [byte for s in matrices(scale, shape, block, contract) for byte in swizzled(s)]
    assert stored.flatten().tolist() == expected
    assert tuple(stored.shape) == layouts.stored_shape(
        shape, "swizzle_32_4_4", block=block, contract=contract
    )
    assert stored.dim() == max(len(shape) - 1, 1)
    assert stored.is_contiguous()


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_plain_t_swaps_the_last_two_dimensions(shape, block):
    scale = scales(shape, block)
    stored = layouts.encode(scale, "plain_t", block=block)
    assert stored.is_contiguous()
    assert torch.equal(stored, scale.transpose(-1, -2))
    back = layouts.decode(stored.flatten(), "plain_t", block=block, shape=shape)
    assert torch.equal(back, scale)
    assert back.is_contiguous()


def test_rank_1_is_one_row_in_every_layout():
    scale = scales((100,), (1, 32))
    assert layouts.encode(scale, "plain").shape == (4,)
    assert layouts.encode(scale, "plain_t").shape == (4, 1)
    assert layouts.encode(scale, "swizzle_32_4_4").shape == (512,)
    for layout in layouts.LAYOUTS:
        stored = layouts.encode(scale, layout)
        assert torch.equal(layouts.decode(stored, layout, shape=(100,)), scale)


def test_results_are_copies():
    scale = scales((64, 64), (1, 32))
    for layout in layouts.LAYOUTS:
        stored = layouts.encode(scale, layout)
        back = layouts.decode(stored, layout, shape=(64, 64))
        assert len({t.untyped_storage().data_ptr() for t in (scale, stored, back)}) == 3


@pytest.mark.parametrize("axis", ["M", "K"])
@pytest.mark.parametrize("ends", [[0], [7], [3, 3, 20], [0, 0, 0], [1, 2, 3, 4, 130], [128, 256]])
def test_groups_are_swizzled_one_by_one(ends, axis):
    s = scales((257, 32 * 9), (1, 32)) if axis == "M" else scales((70, 32 * 257), (1, 32))
    offs = torch.tensor(ends, dtype=torch.int32)
    stored = layouts.encode_groups(s, offs, axis=axis)
    rows, columns = s.shape
    bytes_, first = [], 0
    for last in ends:
        group = s[first:last] if axis == "M" else s[:, first:last]
        bytes_ += swizzled(group)
        first = last
    assert stored.flatten().tolist() == bytes_ + [0] * (stored.numel() - len(bytes_))
    up = lambda size, unit: -(-size // unit) * unit  # noqa: E731
    expected = (rows + 128 * len(ends), up(columns, 4))
    if axis == "K":
        expected = (up(rows, 128), columns + 4 * len(ends))
    assert tuple(stored.shape) == expected
    back = layouts.decode_groups(stored, offs, axis=axis, shape=(rows, columns))
    covered = s.clone()
    (covered[ends[-1] :] if axis == "M" else covered[:, ends[-1] :]).zero_()
    assert torch.equal(back, covered)
