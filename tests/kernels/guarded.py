"""Bytes of results, and output buffers that show what a kernel wrote, and where."""

import torch

import mxref

GUARD = 1 << 17
"""Guard bytes on each side: the payload of the largest tile, so no mask can miss by more."""

POISONS = (0xA5, 0x5A)
"""Two fills: a byte that a kernel leaves alone cannot be right under both."""


def bytes_of(quantized):
    """Payload and scale as uint8, in logical order."""
    return tuple(part.view(torch.uint8).cpu() for part in quantized)


def expected(x, recipe):
    return bytes_of(mxref.quantize(x.cpu(), recipe))


def assert_bytes(actual, wanted):
    """Byte equality of (payload, scale), naming the first difference."""
    for name, left, right in zip(("payload", "scale"), actual, wanted, strict=True):
        assert left.shape == right.shape, f"{name}: shape {left.shape}, expected {right.shape}"
        wrong = (left != right).nonzero()
        if len(wrong):
            at = tuple(wrong[0].tolist())
            raise AssertionError(
                f"{name}: {len(wrong)} bytes differ, first at {at}: "
                f"{left[at].item():#04x}, expected {right[at].item():#04x}"
            )


class GuardedBuffer:
    """A uint8 buffer of `shape` filled with poison, between guard bytes of the same fill."""

    def __init__(self, shape, poison, device):
        size = torch.Size(shape).numel()
        self.poison = poison
        self.whole = torch.full((size + 2 * GUARD,), poison, dtype=torch.uint8, device=device)
        self.inner = self.whole[GUARD : GUARD + size].view(shape)

    def assert_guards(self):
        size = self.inner.numel()
        for side, part in (("before", self.whole[:GUARD]), ("after", self.whole[GUARD + size :])):
            assert bool((part == self.poison).all()), f"bytes {side} the buffer were written"


def launch_guarded(launch, x, shapes, recipe, config=None):
    """The bytes a launch wrote; fails if it wrote outside or, under either poison, too little."""
    results = []
    for poison in POISONS:
        buffers = [GuardedBuffer(shape, poison, x.device) for shape in shapes]
        launch(x, *(buffer.inner for buffer in buffers), recipe, config)
        for buffer in buffers:
            buffer.assert_guards()
        results.append(tuple(buffer.inner.cpu() for buffer in buffers))
    assert_bytes(*results)
    return results[0]
