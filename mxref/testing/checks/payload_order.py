"""The payload lies in memory as claimed: row-major, or every matrix of it column-major."""

from collections.abc import Iterator

from torch import Tensor

from mxref.testing.check import Check, Setting
from mxref.testing.claims import Claims
from mxref.testing.fill import scattered
from mxref.testing.judge import Judge, Wrong


def inputs(setting: Setting) -> Iterator[Tensor]:
    """A contiguous matrix, longer than wide, and one wider than long."""
    for salt, (rows, columns) in enumerate(((3, 2), (1, 5))):
        yield scattered(setting, (rows * setting.step, columns * setting.step), 210 + salt)


def judge(judge: Judge, x: Tensor) -> None:
    """Strides alone: the bytes are compared by the other checks, whatever the strides."""
    payload, order = judge.ask(x).payload, judge.claims.payload_order
    ordered = payload if order == "row" else payload.mT
    if not ordered.is_contiguous():
        raise Wrong(
            f"payload of shape {tuple(payload.shape)} has strides {payload.stride()}, expected "
            f"{'row' if order == 'row' else 'column'}-major"
        )
    judge.elements += x.numel()


def not_claimed(claims: Claims) -> str:
    """Any strides are taken unless an order is claimed."""
    return "not claimed: payload_order='any'" if claims.payload_order == "any" else ""


CHECK = Check("payload_order", inputs, judge=judge, not_claimed=not_claimed)
