"""Bytes of results, and output buffers that show what a kernel wrote, and where."""

from itertools import product
from typing import NamedTuple

import torch

import mxref

GUARD = 1 << 18
"""Guard bytes on each side: the payload of the largest tile, so no mask can miss by more."""

POISONS = (0xA5, 0x5A)
"""Two fills: a byte that a kernel leaves alone cannot be right under both."""


class Way(NamedTuple):
    """Which blocks, and how payload and scales are stored."""

    block: tuple[int, int] = (1, 32)
    payload_order: str = "row"
    scale_layout: str = "plain"

    def __str__(self):
        return f"{self.block[0]}x{self.block[1]}-{self.payload_order}-{self.scale_layout}"


DIM0 = Way()


def ways_of(spec):
    """Every way that a KernelSpec claims."""
    return [Way(*way) for way in product(spec.blocks, spec.payload_orders, spec.scale_layouts)]


def bytes_of(quantized):
    """Payload and scale as uint8, in logical order."""
    return tuple(part.view(torch.uint8).cpu() for part in quantized)


def expected(x, recipe, way=DIM0):
    """Payload and stored scales as mxref gives them, uint8."""
    payload, scale = bytes_of(mxref.quantize(x.cpu(), recipe, block=way.block))
    contract = None
    if way.block == (32, 32) and way.scale_layout == "swizzle_32_4_4":
        contract = {"row": -1, "col": -2}[way.payload_order]
    arguments = {"block": way.block, "shape": tuple(x.shape), "contract": contract}
    return payload, mxref.layouts.encode(scale, way.scale_layout, **arguments)


def lies_in_order(payload, way):
    """Whether a payload is dense and has the order of its way."""
    if way.payload_order == "col" and payload.dim() > 1:
        payload = payload.mT
    return payload.is_contiguous()


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


def launch_guarded(launch, x, shapes, recipe, way=DIM0, config=None, poisons=POISONS):
    """The bytes a launch wrote; fails if it wrote outside or, under either poison, too little.

    Under one poison, a byte that is left alone is seen unless it should be the poison.
    """
    turned = way.payload_order == "col" and len(shapes[0]) > 1
    payload, scale = (torch.Size(shape) for shape in shapes)
    if turned:
        payload = torch.Size((*payload[:-2], payload[-1], payload[-2]))
    results = []
    for poison in poisons:
        buffers = [GuardedBuffer(shape, poison, x.device) for shape in (payload, scale)]
        launch(x, *(buffer.inner for buffer in buffers), recipe, *way, config)
        for buffer in buffers:
            buffer.assert_guards()
        codes, byte = (buffer.inner.cpu() for buffer in buffers)
        results.append((codes.mT if turned else codes, byte))
    assert_bytes(results[0], results[-1])
    return results[0]
