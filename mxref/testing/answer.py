"""What a target returned, brought to bytes: payload in x's shape, scale as a flat list of bytes."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mxref.layouts import stored_shape
from mxref.testing.claims import Claims
from mxref.tiles import logical_shape


class Answer(NamedTuple):
    """`payload` (uint8, x's shape, any strides) and `scale` (uint8, flat, in stored order)."""

    payload: Tensor
    scale: Tensor

    def copy(self) -> "Answer":
        """The same bytes in memory of its own."""
        return Answer(self.payload.clone(), self.scale.clone())


def require_pair(output: object) -> tuple[Any, Any]:
    """The two parts of a target's output; ValueError in a line for anything else."""
    if not isinstance(output, (tuple, list)):
        raise ValueError(f"returned {_kind(output)}, expected (payload, scale)")
    if len(output) != 2:
        raise ValueError(f"returned {len(output)} values, expected 2: (payload, scale)")
    return output[0], output[1]


def read_answer(output: object, shape: tuple[int, ...], claims: Claims) -> Answer:
    """The bytes of a target's output for an x of this shape; ValueError in a line if malformed."""
    payload, scale = require_pair(output)
    _require(payload, "payload", getattr(torch, claims.element.torch_dtype), claims)
    _require(scale, "scale", torch.float8_e8m0fnu, claims)
    if tuple(payload.shape) != shape:
        raise ValueError(f"payload has shape {tuple(payload.shape)}, expected {shape}, that of x")
    return Answer(payload.detach().view(torch.uint8), _scale(scale, shape, claims))


def _scale(scale: Tensor, shape: tuple[int, ...], claims: Claims) -> Tensor:
    if claims.scale_layout == "plain":
        logical = logical_shape(shape, claims.block)
        if tuple(scale.shape) != logical:
            raise ValueError(
                f"scale has shape {tuple(scale.shape)}, expected {logical}, the logical shape"
            )
    wanted = math.prod(encoded_shape(shape, claims))
    if scale.numel() != wanted:
        raise ValueError(
            f"scale has {scale.numel()} bytes (shape {tuple(scale.shape)}), expected {wanted} in "
            f"layout {claims.scale_layout!r}"
        )
    return scale.detach().view(torch.uint8).reshape(-1)


def encoded_shape(shape: tuple[int, ...], claims: Claims) -> tuple[int, ...]:
    """The stored shape of the scales of an x of this shape, in the layout claimed."""
    return stored_shape(shape, claims.scale_layout, block=claims.block, contract=claims.contract)


def _require(value: object, name: str, dtype: torch.dtype, claims: Claims) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} is {_kind(value)}, expected a tensor")
    if value.dtype not in (dtype, torch.uint8):
        raise ValueError(f"{name} has dtype {value.dtype}, expected {dtype} or torch.uint8")
    if value.layout is not torch.strided:
        raise ValueError(f"{name} has layout {value.layout}, expected torch.strided")
    # a zero-size tensor tells the index that a bare "cuda" stands for
    here = torch.empty(0, device=claims.device).device
    if value.device != here:
        raise ValueError(f"{name} is on {value.device}, expected {here}, where x is")


def _kind(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
