"""Assertions on bytes, with a message that says which bits differ and, for MX tensors, why."""

from typing import Any

import torch
from torch import Tensor

from mxref.recipes import Recipe
from mxref.testing.comparison import NAN_POLICIES, Terms, difference, one_of, require_tensor, share
from mxref.testing.fields import fields, value

_NAN_MAGNITUDE = {torch.float8_e4m3fn: 0x7E, torch.float8_e5m2: 0x7C}
"""The largest magnitude of a code that is no NaN."""


def assert_bits_equal(actual: Tensor, expected: Tensor, *, nan: str = "any") -> None:
    """The bytes of two tensors are the same, and so are shape, dtype and device.

    Any dtype and any strides; elements are compared by index. 0.0 and -0.0 differ, NaN equals the
    NaN of the same bits.

    Args:
        actual: what was computed.
        expected: what it should be.
        nan: "any": in float8_e4m3fn and float8_e5m2 every NaN code equals every other. "strict":
            bytes alone. Other dtypes are always strict.

    Raises:
        AssertionError: they differ; the message names the first element in bits.
        TypeError, ValueError: no tensor, or one without bytes of its own; an unknown `nan`.

    >>> assert_bits_equal(torch.tensor([1.0, 0.0]), torch.tensor([1.0, -0.0]))
    Traceback (most recent call last):
    AssertionError: Tensor bits are not equal! Mismatched elements: 1 / 2 (50.0 %), first at \
index (1,)
      actual    0x00000000 0 00000000 00000000000000000000000  0.0
      expected  0x80000000 1 00000000 00000000000000000000000  -0.0
    """
    one_of(nan, "nan", NAN_POLICIES)
    for name, tensor in (("actual", actual), ("expected", expected)):
        require_tensor(tensor, name)
    for what in ("shape", "dtype", "device"):
        found, wanted = getattr(actual, what), getattr(expected, what)
        if found != wanted:
            shown = (tuple(found), tuple(wanted)) if what == "shape" else (found, wanted)
            raise AssertionError(
                f"Tensor bits are not equal! {what}: actual {shown[0]}, expected {shown[1]}"
            )
    first, second = _bytes_of(actual), _bytes_of(expected)
    wrong = (first != second).any(1)
    if nan == "any" and actual.dtype in _NAN_MAGNITUDE:
        limit = _NAN_MAGNITUDE[actual.dtype]
        wrong &= ~(((first & 0x7F) > limit) & ((second & 0x7F) > limit)).any(1)
    places = wrong.nonzero()[:, 0]
    if not places.numel():
        return
    at = int(places[0])
    index = tuple(int(i) for i in torch.unravel_index(places[0], actual.shape))
    lines = [
        f"Tensor bits are not equal! Mismatched elements: {share(places.numel(), wrong.numel())}, "
        f"first at index {index}"
    ]
    for name, stored in (("actual   ", first), ("expected ", second)):
        bits = int.from_bytes(bytes(stored[at].tolist()), "little")
        shown_value = value(bits, actual.dtype)
        lines.append(f"  {name} {fields(bits, actual.dtype)}  {shown_value}".rstrip())
    raise AssertionError("\n".join(lines))


def assert_mx_equal(
    actual: Any,
    expected: Any = None,
    *,
    source: Tensor | None = None,
    recipe: str | Recipe = "rceil",
    block: tuple[int, int] = (1, 32),
    scale_layout: str = "plain",
    contract: int | None = None,
    given: str | None = None,
    nan: str = "any",
) -> None:
    """An MX tensor has the bytes expected: given ones, or those of the reference for `source`.

    Args:
        actual: (payload, scale) or `mxref.Quantized`: float8 or uint8 of x's shape, float8_e8m0fnu
            or uint8 as `scale_layout` stores it (for "plain" of the logical shape).
        expected: another; left out, `mxref.quantize(source, recipe, block=block)`.
        source: what was quantized. With it the message holds input bits and a diagnosis.
        recipe: a name in `mxref.RECIPES` or a Recipe: the bytes of `source`, and the element.
        block: (1, 32), (32, 1) or (32, 32).
        scale_layout: a name in `mxref.layouts.LAYOUTS`.
        contract: -1 or -2, as in `mxref.layouts.encode`.
        given: None, or "scale": the payload is judged under actual's own scales, whatever they
            are. Needs `source`.
        nan: "any" NaN code where NaN is expected, or "strict".

    Raises:
        AssertionError: bytes, shapes or dtypes are not those expected. The message names the first
            wrong block: scale and elements in fields, input bits, values, and a probable cause.
        TypeError, ValueError: a wrong argument, named with its value and what is allowed.

    >>> import mxref
    >>> x = torch.full((2, 32), 448.0)
    >>> assert_mx_equal(mxref.quantize(x, "rceil"), source=x, recipe="rceil")
    >>> try:
    ...     assert_mx_equal(mxref.quantize(x, "ceil"), source=x, recipe="rceil")
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[-1])
    diagnosis: the bytes are those of recipe 'ceil', not 'rceil'
    """
    terms = Terms.of(recipe, block, scale_layout, contract, given, nan)
    message = difference(actual, expected, source, terms)
    if message is not None:
        raise AssertionError(message)


def _bytes_of(tensor: Tensor) -> Tensor:
    """The bytes of each element, (elements, bytes), on the CPU."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if tensor.dtype.is_complex:
        flat = torch.view_as_real(flat.resolve_conj())
    elif tensor.dtype == torch.bool:
        flat = flat.to(torch.uint8)
    return flat.view(torch.uint8).reshape(tensor.numel(), tensor.dtype.itemsize)
