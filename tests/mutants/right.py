"""Right quantizers of other make: none of them may raise an alarm."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

import mxref
from tests.mutants.model import amax_of, byte_of, fault


class Right(NamedTuple):
    """`fn` is what `claims` say, in its own way."""

    name: str
    fn: Callable[[Tensor], Any]
    dtypes: tuple[torch.dtype, ...] = (torch.bfloat16,)
    claims: dict[str, Any] = {}  # noqa: RUF012 - never changed


def reciprocal(byte: Tensor) -> Tensor:
    return 1 / torch.ldexp(torch.ones_like(byte, dtype=torch.float64), byte - 127)


def plain_bytes(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x, "rceil")
    return payload.view(torch.uint8), scale.view(torch.uint8)


def nan_is_ff(x: Tensor) -> Any:
    payload, scale = plain_bytes(x)
    return payload.masked_fill(payload == 0x7F, 0xFF), scale


def nan_keeps_its_sign(x: Tensor) -> Any:
    payload, scale = plain_bytes(x)
    sign = torch.signbit(x).to(torch.uint8) << 7
    return torch.where(payload == 0x7F, payload | sign, payload), scale


def other_strides(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x, "rceil")
    if x.dim() < 2:
        return [payload, scale]
    return [each.mT.contiguous().mT for each in (payload, scale)]


def inside_a_larger_buffer(x: Tensor) -> Any:
    """Views with gaps between their rows, as a padded allocation gives."""
    out = []
    for each in plain_bytes(x):
        buffer = torch.full((*each.shape[:-1], each.shape[-1] + 7), 0xAA, dtype=torch.uint8)
        view = buffer[..., 3 : 3 + each.shape[-1]]
        view.copy_(each)
        out.append(view)
    return out


def multiples_only(x: Tensor) -> Any:
    if x.dim() != 2 or not x.numel() or any(size % 32 for size in x.shape):
        raise ValueError("sizes must be multiples of 32")
    if not x.is_contiguous() or x.storage_offset():
        raise ValueError("contiguous only")
    return mxref.quantize(x, "rceil")


def bf16_only(x: Tensor) -> Any:
    if x.dtype != torch.bfloat16:
        raise NotImplementedError(str(x.dtype))
    return mxref.quantize(x, "rceil")


def torch_cast(x: Tensor) -> Any:
    """torch's own cast of values that are clamped first: it saturates in no version then."""

    def finish(x: Tensor, payload: Tensor, scale: Tensor) -> Any:
        wide = scale.repeat_interleave(32, -1)[..., : x.shape[-1]].to(torch.int64)
        scaled = x.double() * torch.ldexp(torch.ones_like(wide, dtype=torch.float64), 127 - wide)
        scaled = scaled.masked_fill(wide == 255, torch.nan).clamp(-448, 448)
        return scaled.to(torch.float32).to(torch.float8_e4m3fn), scale

    return fault(finish=finish)(x)


def padded_first(x: Tensor) -> Any:
    """Zeros up to multiples of 128, and the result cut back."""
    if x.dim() != 2 or not x.numel():
        return mxref.quantize(x, "rceil")
    rows, columns = x.shape
    whole = x.new_zeros(rows + -rows % 128, columns + -columns % 128)
    whole[:rows, :columns] = x
    payload, scale = mxref.quantize(whole, "rceil")
    return payload[:rows, :columns], scale[:rows, : -(-columns // 32)]


def row_by_row(x: Tensor) -> Any:
    """Pieces of 64 rows, as the programs of a kernel would take them."""
    if x.dim() != 2 or not x.numel():
        return mxref.quantize(x, "rceil")
    parts = [plain_bytes(piece) for piece in x.split(64)]
    return [torch.cat(each) for each in zip(*parts, strict=True)]


def columns_by_transposing(x: Tensor) -> Any:
    payload, scale = mxref.quantize(x.mT, "rceil")
    return payload.mT, scale.mT


def columns_stored_transposed(x: Tensor) -> Any:
    """The scale of the transposed matrix is what plain_t stores."""
    payload, scale = mxref.quantize(x.mT, "rceil")
    return payload.mT, scale


def square_from_rows(x: Tensor) -> Any:
    """Amax of 32 x 32 as the largest of 32 row blocks; elements under that scale."""
    row_amax = amax_of(fault().tiled(x.to(torch.float64)))
    lead, rows, _, columns, _ = row_amax.shape
    padded = row_amax.new_zeros(lead, -(-rows // 32) * 32, columns)
    padded[:, :rows] = row_amax.reshape(lead, rows, columns)
    amax = padded.reshape(lead, -1, 32, columns).amax(2)
    byte = byte_of(amax.masked_fill(amax.isinf(), 0), "rceil", "e4m3").masked_fill(
        amax.isinf(), 255
    )
    scale = byte.to(torch.uint8).reshape(*x.shape[:-2], *amax.shape[1:])
    return mxref.quantize(x, "rceil", block=(32, 32), scale=scale)


def swizzled_in_two_dimensions(x: Tensor) -> Any:
    """(Rp, Cp) where a flat tensor would do as well: the bytes are the same."""
    payload, scale = mxref.quantize(x, "rceil")
    stored = mxref.layouts.encode(scale.view(torch.uint8), "swizzle_32_4_4")
    return payload, stored.reshape(*x.shape[:-2], 128, -1) if stored.numel() else stored


RIGHT = (
    Right("divides", fault(multiplier=reciprocal)),
    Right("plain bytes", plain_bytes),
    Right("NaN is 0xFF", nan_is_ff),
    Right("NaN keeps its sign", nan_keeps_its_sign),
    Right("other strides", other_strides),
    Right("inside a larger buffer", inside_a_larger_buffer),
    Right("multiples only", multiples_only),
    Right("bf16 only", bf16_only, (torch.float16, torch.bfloat16)),
    Right("torch's cast", torch_cast),
    Right("padded first", padded_first),
    Right("row by row", row_by_row),
    Right("columns by transposing", columns_by_transposing, claims={"block": (32, 1)}),
    Right("columns stored transposed", columns_stored_transposed,
          claims={"block": (32, 1), "scale_layout": "plain_t"}),
    Right("square from rows", square_from_rows, claims={"block": (32, 32)}),
    Right("swizzled in two dimensions", swizzled_in_two_dimensions,
          claims={"scale_layout": "swizzle_32_4_4"}),
)  # fmt: skip
