"""Can the guards fail? Kernels that are wrong about memory; and do pairs really meet?"""

import pytest
import torch

from tests.kernels.guarded import GUARD, GuardedBuffer, assert_bytes, launch_guarded
from tests.kernels.pairwise import pairs_of, pairwise

X = torch.zeros(2, 32)
SHAPES = ((2, 32), (2, 1))


def right(x, payload, scale, *rest):
    payload.zero_()
    scale.fill_(1)


def test_a_right_launch_passes():
    payload, scale = launch_guarded(right, X, SHAPES, "rceil")
    assert_bytes((payload, scale), (torch.zeros(SHAPES[0]).byte(), torch.ones(SHAPES[1]).byte()))


@pytest.mark.parametrize("which", [0, 1], ids=["payload", "scale"])
@pytest.mark.parametrize(("side", "shift"), [("before", -1), ("after", None), ("after", "far")])
def test_a_store_outside_is_seen(which, side, shift):
    def wrong(x, payload, scale, *rest):
        right(x, payload, scale, *rest)
        target = (payload, scale)[which]
        offset = {-1: -1, None: target.numel(), "far": target.numel() + GUARD - 1}[shift]
        whole = target.as_strided((1,), (1,), target.storage_offset() + offset)
        whole.fill_(0)

    with pytest.raises(AssertionError, match=f"bytes {side} the buffer"):
        launch_guarded(wrong, X, SHAPES, "rceil")


@pytest.mark.parametrize("which", [0, 1], ids=["payload", "scale"])
def test_a_byte_left_alone_is_seen(which):
    def wrong(x, payload, scale, *rest):
        left = (payload, scale)[which].flatten()[-1].clone()
        right(x, payload, scale, *rest)
        (payload, scale)[which].view(-1)[-1] = left

    with pytest.raises(AssertionError, match="1 bytes differ"):
        launch_guarded(wrong, X, SHAPES, "rceil")


def test_a_sign_of_zero_and_a_nan_sign_are_differences():
    zero = torch.zeros(1, dtype=torch.uint8)
    for code in (0x80, 0xFF):
        with pytest.raises(AssertionError, match="payload: 1 bytes differ"):
            assert_bytes((zero + code, zero), (zero + (code & 0x7F), zero))


def test_an_empty_buffer_keeps_its_guards():
    buffer = GuardedBuffer((0, 32), 0xA5, "cpu")
    assert buffer.inner.shape == (0, 32)
    buffer.assert_guards()


def test_every_pair_meets():
    axes = (range(7), range(5), range(5), range(2))
    rows = pairwise(*axes)
    met = set().union(*(pairs_of(row) for row in rows))
    assert len(met) == 35 + 35 + 14 + 25 + 10 + 10
    assert 35 <= len(rows) < 60, "far fewer than the 350 of the product"
