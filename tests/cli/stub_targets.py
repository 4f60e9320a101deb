"""Targets for the tests of `mxref verify`, right and wrong."""

import torch

import mxref


def right(x):
    return mxref.quantize(x, "rceil")


def floor(x):
    return mxref.quantize(x, "floor")


def minus_zero_lost(x):
    payload, scale = mxref.quantize(x, "rceil")
    codes = payload.view(torch.uint8).clone()
    codes[codes == 0x80] = 0
    return codes, scale


def raises(x):
    raise RuntimeError("no [bold]kernel[/bold]\nfor you")


def nothing(x):
    return None


def writes_into_x(x):
    answer = mxref.quantize(x, "rceil")
    x.zero_()
    return answer


def swizzled(x):
    payload, scale = mxref.quantize(x, "rceil", block=(32, 32))
    stored = mxref.layouts.encode(
        scale, "swizzle_32_4_4", block=(32, 32), shape=tuple(x.shape), contract=-2
    )
    return payload, stored


def interrupted(x):
    raise KeyboardInterrupt


class Spec:
    """A registered kernel of these tests."""

    recipes, blocks, payload_orders = ("floor", "rceil"), ((1, 32),), ("row",)
    scale_layouts, dtypes = ("plain",), (torch.bfloat16,)

    def __init__(self, name, wrong=False, lacks=None):
        self.name, self.wrong, self.lacks = name, wrong, lacks

    def missing(self, device):
        return self.lacks

    def call(self, x, recipe, block, payload_order, scale_layout):
        return mxref.quantize(x, "rceil" if self.wrong else recipe, block=block)


GOOD = (Spec("good"), Spec("absent", lacks="no such machine here"))
BAD = (Spec("good"), Spec("bad", wrong=True))
ABSENT = (Spec("absent", lacks="no such machine here"),)
not_callable = 3
