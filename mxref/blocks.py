"""quantize and dequantize: a recipe over a block geometry, also under a given scale."""

from typing import NamedTuple

import torch
from torch import Tensor

from mxref import casting
from mxref.bits import INFINITY, MAGNITUDE, pack, pattern
from mxref.formats import ELEMENTS, INPUTS, SCALE_BIAS, SCALE_NAN, ElementFormat
from mxref.recipes import Recipe, resolve
from mxref.rules import is_contract, scale_bytes
from mxref.tiles import (
    PIECE,
    PIECE_ON_DEVICE,
    Block,
    logical_shape,
    pieces,
    require_block,
    require_rank,
    scale_index,
    tiled,
    untiled,
)

_INPUT_DTYPES = {getattr(torch, row.torch_dtype): row for row in INPUTS.values()}
_ELEMENT_DTYPES = {getattr(torch, row.torch_dtype): row for row in ELEMENTS.values()}
_ONE = pattern(1, 0)
_SCALE_DTYPES = (torch.float8_e8m0fnu, torch.uint8)


class Quantized(NamedTuple):
    """An MX tensor: `payload` (float8, the shape of x) and `scale` (float8_e8m0fnu)."""

    payload: Tensor
    scale: Tensor


def quantize(
    x: Tensor,
    recipe: str | Recipe = "rceil",
    *,
    block: tuple[int, int] = (1, 32),
    scale: Tensor | None = None,
) -> Quantized:
    """Quantize to MX: one E8M0 scale byte a block, one float8 code an element, bit-exact.

    For each block, amax = max|x| as fp32, byte = the recipe's rule of amax, and each element is
    x * 2^(127 - byte) rounded to nearest even, saturated at the element's maximum, -0 kept. A block
    that ends outside of x counts its missing elements as zeros (as cuBLAS does).

    Args:
        x: bfloat16, float16 or float32, any strides, any device, any size including 0; rank >= 1
            for block (1, 32), rank >= 2 for (32, 1) and (32, 32). Never changed.
        recipe: a name in `RECIPES` or a `Recipe`.
        block: (1, 32), (32, 1) or (32, 32): elements along the last two dimensions.
        scale: given scales (logical shape, float8_e8m0fnu or uint8, all 256 bytes). The rule and
            the block policy are not applied: an element NaN gives 0x7F, Inf and all above the
            maximum saturate, byte 255 makes the whole block 0x7F (unless a dialect's axes of the
            multiplier and the element say otherwise).

    Returns:
        `Quantized`: payload of x's shape (float8_e4m3fn or float8_e5m2) and scale of the logical
        shape (..., ceil(M / block[0]), ceil(K / block[1])), float8_e8m0fnu: new, contiguous,
        detached tensors. A given scale comes back as the same tensor.

    =====================  ==================  ==================
    block (e4m3)           floor               rceil
    =====================  ==================  ==================
    all +0 / all -0        0 / 0x00 / 0x80     the same
    fp32 2^-149            0 / 0x00            the same
    amax 448               127 / 0x7E          the same
    amax 480               127 / 0x7E          128 / 0x77
    largest finite fp32    246 / 0x7E          247 / 0x78
    a NaN or Inf           255 / all 0x7F      the same
    =====================  ==================  ==================

    Raises:
        TypeError: x or scale is no tensor or has a wrong dtype, recipe is neither name nor Recipe.
        ValueError: unknown recipe or block, rank too small, scale of a wrong shape.

    Source: OCP MX v1.0 sections 5 and 6.3; cuBLAS 1D block scaling (rceil). POLICY: NaN and Inf
    poison their block; NaN payloads are 0x7F. Dialects differ: docs/dialects.md says how.

    >>> x = torch.tensor([[480.0, -0.0, 1.0]])
    >>> q = quantize(x, "rceil")
    >>> q.scale.view(torch.uint8).tolist(), q.payload.view(torch.uint8).tolist()
    ([[128]], [[119, 128, 48]])
    """
    recipe = resolve(recipe)
    block = require_block(block)
    _require_tensor(x, "x", tuple(_INPUT_DTYPES))
    require_rank(x.shape, block, "x")
    element = ELEMENTS[recipe.element]
    x = x.detach()
    given = None if scale is None else _scale_codes(scale, x, block)
    payload = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    codes = payload.new_empty(logical_shape(x.shape, block)) if given is None else given
    for index in pieces(x.shape, block, PIECE if x.is_cpu else PIECE_ON_DEVICE):
        piece, codes_index = x[index], scale_index(index, block)
        # a missing element is a zero, but for a maximum that starts from 1 it is not there at all
        missing = float("nan") if recipe.nan_scale == "dropped_from_1" else 0.0
        values = casting.widened(tiled(piece, block, missing))
        amax = _amax(values, block, recipe)
        if given is None:
            byte = scale_bytes(amax, recipe, _INPUT_DTYPES[x.dtype])
            codes[codes_index] = byte.reshape(codes[codes_index].shape)
        else:
            byte = given[codes_index].to(torch.int32).reshape(amax.shape)
        stored_codes = _cast(values, amax, byte, recipe, scale is not None)
        payload[index] = untiled(stored_codes, piece.shape)
    stored = payload.view(getattr(torch, element.torch_dtype))
    return Quantized(stored, codes.view(torch.float8_e8m0fnu) if scale is None else scale)


def _amax(values: Tensor, block: Block, recipe: Recipe) -> Tensor:
    """The fp32 pattern of max|x| of each tile; as integers NaN > Inf > every finite number."""
    patterns = values.view(torch.int32)
    if recipe.flush in ("inputs", "both"):
        patterns.copy_(casting.flush_inputs(patterns))
    patterns = patterns & MAGNITUDE
    dropped = recipe.nan_scale.startswith("dropped")
    if dropped:
        patterns.masked_fill_(patterns > INFINITY, -1)
    if block[1] > 1:
        patterns = patterns.amax(4, keepdim=True)
    amax = patterns.amax(2, keepdim=True) if block[0] > 1 else patterns
    if dropped:
        amax.masked_fill_(amax < 0, _ONE if recipe.nan_scale == "dropped_from_1" else 0)
    return amax


def _cast(values: Tensor, amax: Tensor, byte: Tensor, recipe: Recipe, given: bool) -> Tensor:
    """The stored codes (uint8) of the tiles under their scale bytes; `values` is used up.

    Where a dialect has nothing of its own to do, which a look at a CPU's data tells, the fast road
    of the contract gives the same codes.
    """
    if is_contract(recipe) or (values.is_cpu and casting.is_ordinary(values, byte, recipe)):
        return _contract_cast(values, amax, byte, ELEMENTS[recipe.element])
    poisoned = (amax > INFINITY) & (recipe.poison == "block" and not given)
    by = casting.multiplier(byte, poisoned, recipe)
    return casting.cast(values.view(torch.int32), by, recipe)


def _contract_cast(values: Tensor, amax: Tensor, byte: Tensor, element: ElementFormat) -> Tensor:
    """`_cast` for floor, rceil, ceil and even.

    On a CPU a look at the blocks decides the road and skips the mask that is not needed; on a
    device it would stall the host, so there the exact road and the mask are always taken.
    """
    patterns = values.view(torch.int32)
    work = patterns >> 24
    sign = work.to(torch.uint8).bitwise_and_(0x80)
    masked = not values.is_cpu or bool(((byte == SCALE_NAN) | (amax > INFINITY)).any())
    nan = (byte == SCALE_NAN) | casting.is_nan(patterns) if masked else None
    if values.is_cpu and not bool(casting.needs_shift(amax, byte, element).any()):
        casting.multiply(values, byte)
        patterns.bitwise_and_(MAGNITUDE).clamp_max_(casting.max_pattern(element))
    else:
        patterns = casting.shift(patterns.bitwise_and_(MAGNITUDE), byte, element)
    codes = casting.encode(patterns, work, element).to(torch.uint8).bitwise_or_(sign)
    return codes if nan is None else codes.masked_fill_(nan, element.nan_code)


def dequantize(
    payload: Tensor,
    scale: Tensor,
    *,
    block: tuple[int, int] = (1, 32),
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The values of an MX tensor: payload * 2^(byte - 127) in fp32, then rounded once to dtype.

    Args:
        payload: float8_e4m3fn or float8_e5m2, any strides, any size; rank as for `quantize`.
        scale: float8_e8m0fnu or uint8, of the logical shape of `quantize`; all 256 bytes.
        block: (1, 32), (32, 1) or (32, 32).
        dtype: float32, bfloat16 or float16.

    Returns:
        A new contiguous tensor of payload's shape. The fp32 product is exact or a signed Inf;
        rounding to dtype is to nearest even, past its end a signed Inf.

    ======================  ===================================
    scale byte / payload    value
    ======================  ===================================
    255 / any               NaN
    any / NaN               NaN
    0                       payload * 2^-127, subnormals kept
    any / 0x80              -0
    any / 0x7C, e5m2        Inf
    ======================  ===================================

    Raises:
        TypeError: payload or scale is no tensor or has a wrong dtype; dtype is not allowed.
        ValueError: unknown block, rank too small, scale of a wrong shape or on another device.

    Source: OCP MX v1.0 section 5.1. POLICY: overflow gives Inf, which v1.0 leaves open.

    >>> payload = torch.tensor([[0x7E, 0x80, 0x01]], dtype=torch.uint8).view(torch.float8_e4m3fn)
    >>> dequantize(payload, torch.tensor([[128]], dtype=torch.uint8)).tolist()
    [[896.0, -0.0, 0.00390625]]
    """
    block = require_block(block)
    _require_tensor(payload, "payload", tuple(_ELEMENT_DTYPES))
    require_rank(payload.shape, block, "payload")
    if dtype not in _INPUT_DTYPES:
        allowed = ", ".join(map(str, _INPUT_DTYPES))
        raise TypeError(f"dtype={dtype!r}: expected one of {allowed}")
    given = _scale_codes(scale, payload, block)
    stored = payload.detach().view(torch.uint8)
    table = _values(_ELEMENT_DTYPES[payload.dtype], dtype, payload.device)
    out = torch.empty(payload.shape, dtype=dtype, device=payload.device)
    for index in pieces(payload.shape, block, PIECE if payload.is_cpu else PIECE_ON_DEVICE):
        tiles = tiled(stored[index], block).to(torch.int32)
        codes = given[scale_index(index, block)].to(torch.int32)
        codes = codes.reshape(tiles.shape[0], tiles.shape[1], 1, tiles.shape[3], 1)
        pairs = (codes * 256 + tiles).reshape(-1)
        out[index] = untiled(table.index_select(0, pairs).view(tiles.shape), out[index].shape)
    return out


_TABLES: dict[tuple[ElementFormat, torch.dtype, torch.device], Tensor] = {}


def _values(element: ElementFormat, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The value of every pair (scale byte, code), at byte * 256 + code; made once."""
    key = (element, dtype, device)
    if key in _TABLES:
        return _TABLES[key]
    table = _make_values(element, dtype).to(device)
    if type(table) is Tensor:  # a fake or wrapped one belongs to the mode it was made in
        _TABLES[key] = table
    return table


def _make_values(element: ElementFormat, dtype: torch.dtype) -> Tensor:
    fmt = _INPUT_DTYPES[dtype]
    code = torch.arange(256, device="cpu").repeat(256)
    byte = torch.arange(256, device="cpu").repeat_interleave(256)
    magnitude = code & 0x7F
    field = magnitude >> element.mantissa_bits
    fraction = magnitude & ((1 << element.mantissa_bits) - 1)
    significand = fraction + ((field > 0).to(torch.int64) << element.mantissa_bits)
    exponent = field.clamp_min(1) - element.bias - element.mantissa_bits + byte - SCALE_BIAS
    # exact in fp32 (Inf past its end), so that a narrower dtype rounds only once
    bits = pack(significand, exponent, fmt)
    nan = byte == SCALE_NAN
    if element.inf_code is None:
        nan |= magnitude == element.nan_code
    else:
        nan |= magnitude > element.inf_code
        bits = bits.masked_fill(magnitude == element.inf_code, fmt.exponent_mask)
    bits |= (code >> 7) << (fmt.bits - 1)
    bits = bits.masked_fill(nan, fmt.exponent_mask | (1 << (fmt.mantissa_bits - 1)))
    integer = torch.int32 if fmt.bits == 32 else torch.int16
    return bits.to(integer).view(dtype)


def _require_tensor(value: object, name: str, dtypes: tuple[torch.dtype, ...]) -> None:
    allowed = ", ".join(map(str, dtypes))
    if not isinstance(value, Tensor):
        text = " ".join(repr(value).split())[:80]
        raise TypeError(f"{name}={text}: expected a tensor, got {type(value).__name__}")
    if value.layout is not torch.strided or value.is_nested:
        layout = "nested" if value.is_nested else value.layout
        raise TypeError(f"{name} has layout {layout}: expected torch.strided")
    if value.dtype not in dtypes:
        raise TypeError(f"{name} has dtype {value.dtype}: expected one of {allowed}")


def scale_bytes_of(scale: Tensor, name: str = "scale") -> Tensor:
    """The bytes (uint8 view) of float8_e8m0fnu or uint8 scales, or an error that names them."""
    _require_tensor(scale, name, _SCALE_DTYPES)
    return scale.detach().view(torch.uint8)


def _scale_codes(scale: Tensor, x: Tensor, block: Block) -> Tensor:
    """The bytes (uint8) of a given scale, after the checks against x."""
    codes = scale_bytes_of(scale)
    expected = logical_shape(x.shape, block)
    if tuple(scale.shape) != expected:
        raise ValueError(
            f"scale has shape {tuple(scale.shape)}: expected {expected}, the logical shape of "
            f"block={block} for {tuple(x.shape)}"
        )
    if scale.device != x.device:
        raise ValueError(f"scale is on {scale.device}: expected {x.device}, where the values are")
    return codes
