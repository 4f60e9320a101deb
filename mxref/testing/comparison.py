"""Two MX tensors compared byte by byte, and the message for people where they differ."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mxref import layouts
from mxref.blocks import quantize
from mxref.formats import ELEMENTS, SCALE_BIAS, SCALE_NAN, ElementFormat
from mxref.layouts import LAYOUTS
from mxref.recipes import Recipe, resolve
from mxref.testing.arrange import tile_of
from mxref.testing.diagnosis import diagnose
from mxref.testing.fields import code_value, fields, number, value
from mxref.tiles import Block, logical_shape, require_block, require_rank, tiled

NAN_POLICIES = ("any", "strict")
SHOWN = 8
"""Differing elements that are shown in bits; the bytes of 32 elements follow."""
INPUTS = (torch.bfloat16, torch.float16, torch.float32)

Stored = tuple[Tensor, Tensor]
"""(payload, scale) as uint8 on the CPU: the payload in x's shape, the scale flat."""


@dataclass(frozen=True)
class Terms:
    """What is compared with what, checked: build one with `Terms.of`."""

    recipe: Recipe
    block: Block
    layout: str
    contract: int | None
    given: str | None
    nan: str

    @classmethod
    def of(
        cls,
        recipe: str | Recipe,
        block: tuple[int, int],
        layout: str,
        contract: int | None,
        given: str | None,
        nan: str,
    ) -> "Terms":
        """The terms, or an error that names the argument and what is allowed."""
        one_of(layout, "scale_layout", tuple(LAYOUTS))
        one_of(nan, "nan", NAN_POLICIES)
        if given is not None:
            one_of(given, "given", ("scale",))
        return cls(resolve(recipe), require_block(block), layout, contract, given, nan)

    @property
    def element(self) -> ElementFormat:
        """The element format of the payload."""
        return ELEMENTS[self.recipe.element]

    @property
    def payload_dtype(self) -> torch.dtype:
        """Its dtype in torch."""
        found: torch.dtype = getattr(torch, self.element.torch_dtype)
        return found

    def stored_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the stored scales of an x of this shape."""
        return layouts.stored_shape(shape, self.layout, block=self.block, contract=self.contract)

    def decoded(self, stored: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Stored scale bytes as logical ones."""
        keywords = {"block": self.block, "shape": shape, "contract": self.contract}
        return layouts.decode(stored, self.layout, **keywords)  # type: ignore[arg-type]

    def reference(self, source: Tensor, scale: Tensor | None) -> Stored:
        """What the reference gives, also under given (stored) scales."""
        shape = tuple(source.shape)
        own = None if scale is None else self.decoded(scale, shape).to(source.device)
        found = quantize(source.detach(), self.recipe, block=self.block, scale=own)
        payload = found.payload.view(torch.uint8).cpu()
        if scale is not None:
            return payload, scale
        keywords = {"block": self.block, "shape": shape, "contract": self.contract}
        codes = found.scale.view(torch.uint8).cpu()
        encoded = layouts.encode(codes, self.layout, **keywords)  # type: ignore[arg-type]
        return payload, encoded.reshape(-1)


def difference(actual: Any, expected: Any, source: Tensor | None, terms: Terms) -> str | None:
    """The message for people, None where the bytes are the same."""
    if source is None and (expected is None or terms.given is not None):
        wanted = "expected or source" if terms.given is None else "source"
        raise ValueError(f"{wanted}=None: nothing to compare actual with")
    if source is not None:
        require_tensor(source, "source")
        if source.dtype not in INPUTS:
            allowed = ", ".join(map(str, INPUTS))
            raise TypeError(f"source has dtype {source.dtype}: expected one of {allowed}")
        require_rank(source.shape, terms.block, "source")
        shape = tuple(source.shape)
    else:
        shape = tuple(_pair(expected, "expected")[0].shape)
        require_rank(shape, terms.block, "expected payload")
    found = _read(_pair(actual, "actual"), "actual", shape, terms)
    if expected is not None and terms.given is None:
        wanted_bytes = _read(_pair(expected, "expected"), "expected", shape, terms)
    else:
        assert source is not None
        own = found[1] if terms.given is not None else None
        wanted_bytes = terms.reference(source, own)
    wrong = _wrong(found[0], wanted_bytes[0], terms)
    if torch.equal(found[1], wanted_bytes[1]) and not bool(wrong.any()):
        return None
    return Message(found, wanted_bytes, wrong, source, terms, shape).text()


def _wrong(actual: Tensor, expected: Tensor, terms: Terms) -> Tensor:
    wrong = actual != expected
    if terms.nan == "any":
        last = terms.element.inf_code or terms.element.nan_code - 1
        wrong &= ~(((actual & 0x7F) > last) & ((expected & 0x7F) > last))
    return wrong


@dataclass(frozen=True)
class Message:
    """What differs, for people."""

    actual: Stored
    expected: Stored
    wrong: Tensor
    source: Tensor | None
    terms: Terms
    shape: tuple[int, ...]

    def text(self) -> str:
        """Header, first wrong block, diagnosis."""
        terms = self.terms
        scales = [terms.decoded(each[1], self.shape) for each in (self.actual, self.expected)]
        scale_wrong = scales[0] != scales[1]
        tiles = tiled(self.wrong, terms.block).any(4).any(2)
        blocks = (tiles.reshape(scale_wrong.shape) | scale_wrong).reshape(-1).nonzero()[:, 0]
        count = share(len(blocks), scale_wrong.numel())
        header = f"MX tensors are not equal! Mismatched blocks: {count}"
        counts = (
            f"scales: {share(int(scale_wrong.sum()), scale_wrong.numel())}, "
            f"payload elements: {share(int(self.wrong.sum()), self.wrong.numel())}"
        )
        if len(blocks):
            grid = logical_shape(self.shape, terms.block)
            index = tuple(int(i) for i in torch.unravel_index(blocks[0], grid))
            lines = [f"{header}, first at block {index}", counts]
            lines += self._block(index, int(scales[0][index]), int(scales[1][index]))
        else:
            offsets = (self.actual[1] != self.expected[1]).nonzero()[:, 0]
            lines = [header, counts, self._stored(offsets)]
        return "\n".join([*lines, f"diagnosis: {self._diagnosis()}"])

    def _stored(self, offsets: Tensor) -> str:
        at = int(offsets[0])
        found, wanted = int(self.actual[1][at]), int(self.expected[1][at])
        return (
            f"every scale is right; of the stored bytes that belong to none, or repeat one, "
            f"{len(offsets)} differ: byte {at} actual 0x{found:02X}, expected 0x{wanted:02X}"
        )

    def _block(self, index: tuple[int, ...], found: int, wanted: int) -> list[str]:
        mark = "" if found == wanted else "   <- differs"
        lines = []
        for name, byte in (("actual  ", found), ("expected", wanted)):
            shown = fields(byte, torch.float8_e8m0fnu)
            meaning = value(byte, torch.float8_e8m0fnu)
            lines.append(f"  scale    {name} {shown} = {meaning}{mark if name[0] == 'e' else ''}")
        block = self.terms.block
        parts = [tile_of(each, index, block) for each in (self.actual[0], self.expected[0])]
        where = tile_of(self.wrong, index, block)
        places = where.nonzero() if bool(where.any()) else torch.ones_like(where).nonzero()[:2]
        for place in places[:SHOWN]:
            at = tuple(place.tolist())
            lines.append(f"  element  {at if len(at) > 1 else at[0]}{self._input(index, at)}")
            for name, codes, byte in zip(
                ("actual  ", "expected"), parts, (found, wanted), strict=True
            ):
                code = int(codes[at])
                shown = fields(code, self.terms.payload_dtype)
                lines.append(f"           {name} {shown} = {self._value(code, byte)}")
        if len(places) > SHOWN and bool(where.any()):
            lines.append(f"           and {len(places) - SHOWN} more elements of this block")
        for name, codes in zip(("actual  ", "expected"), parts, strict=True):
            flat = codes.reshape(-1)[:32].tolist()
            lines.append(f"  payload  {name} " + " ".join(f"{code:02X}" for code in flat))
        return lines

    def _input(self, index: tuple[int, ...], at: tuple[int, ...]) -> str:
        if self.source is None:
            return ""
        element = tile_of(self.source, index, self.terms.block)[at].detach().cpu().reshape(1)
        bits = int.from_bytes(bytes(element.view(torch.uint8).tolist()), "little")
        return f"  input {fields(bits, element.dtype)} = {value(bits, element.dtype)}"

    def _value(self, code: int, byte: int) -> str:
        """What the code means under its scale."""
        if byte == SCALE_NAN:
            return "NaN"
        own = code_value(code, self.terms.payload_dtype)
        text = number(own)
        if own != own or own in (float("inf"), float("-inf")):
            return text
        return f"{text} * 2^{byte - SCALE_BIAS} = {number(own * 2.0 ** (byte - SCALE_BIAS))}"

    def _diagnosis(self) -> str:
        if self.source is None:
            return "none: it needs source="
        terms = self.terms
        found = diagnose(
            *self.actual,
            self.source,
            recipe=terms.recipe,
            block=terms.block,
            scale_layout=terms.layout,
            contract=terms.contract,
            given=terms.given,
        )
        if not found:
            label = terms.recipe.label
            return f"actual holds the reference's bytes of source under {label!r}: look at expected"
        return found[0].cause


def _pair(found: Any, name: str) -> Stored:
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        got = f"{len(found)} values" if isinstance(found, (tuple, list)) else type(found).__name__
        raise TypeError(f"{name}: expected (payload, scale), got {got}")
    for each, part in zip(found, ("payload", "scale"), strict=True):
        require_tensor(each, f"{name} {part}")
    return found[0], found[1]


def _read(pair: Stored, name: str, shape: tuple[int, ...], terms: Terms) -> Stored:
    """The bytes; AssertionError where dtypes or shapes are not those of an MX tensor of `shape`."""
    wanted = (terms.payload_dtype, torch.float8_e8m0fnu)
    for each, part, dtype in zip(pair, ("payload", "scale"), wanted, strict=True):
        if each.dtype not in (dtype, torch.uint8):
            raise AssertionError(
                f"{name} {part} has dtype {each.dtype}, expected {dtype} or torch.uint8"
            )
    payload, scale = (each.detach().cpu().contiguous().view(torch.uint8) for each in pair)
    if tuple(payload.shape) != shape:
        raise AssertionError(f"{name} payload has shape {tuple(payload.shape)}, expected {shape}")
    stored = terms.stored_shape(shape)
    fits = scale.numel() == torch.Size(stored).numel()
    if not fits or (terms.layout == "plain" and tuple(scale.shape) != stored):
        raise AssertionError(
            f"{name} scale has shape {tuple(scale.shape)}, expected {stored} in layout "
            f"{terms.layout!r} of block {terms.block}"
        )
    return payload, scale.reshape(-1)


def share(part: int, whole: int) -> str:
    """`3 / 64 (4.7 %)`."""
    return f"{part} / {whole} ({100 * part / max(whole, 1):.1f} %)"


def one_of(value_: object, name: str, allowed: tuple[str, ...]) -> None:
    """ValueError or TypeError that names the argument, unless the value is allowed."""
    expected = ", ".join(map(repr, allowed))
    if not isinstance(value_, str):
        raise TypeError(f"{name}={value_!r}: expected one of {expected}")
    if value_ not in allowed:
        raise ValueError(f"{name}={value_!r}: expected one of {expected}")


def require_tensor(tensor: object, name: str) -> None:
    """TypeError, unless it is a tensor that holds its bytes."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}={tensor!r}: expected a tensor, got {type(tensor).__name__}")
    if tensor.is_meta or tensor.layout is not torch.strided:
        raise TypeError(f"{name}: expected a strided tensor that holds its bytes")
