"""Targets that end their process, or never answer, on one kind of input."""

import os
import time

import torch

import mxref
from mxref.testing import Adapter


def right(x):
    return mxref.quantize(x, "rceil")


def nan_among(x):
    return bool(x.isnan().any())


def leaves(x):
    os._exit(0)


def leaves_at_nan(x):
    if nan_among(x):
        os._exit(0)
    return right(x)


def aborts_at_nan(x):
    if nan_among(x):
        os.abort()
    return right(x)


def hangs_at_nan(x):
    if nan_among(x):
        time.sleep(600)
    return right(x)


class Claimed(Adapter):
    recipe, dtypes, payload_order = "floor", (torch.bfloat16,), "row"

    def quantize(self, x):
        return mxref.quantize(x, "floor")


claimed = Claimed()
